import gymnasium
import pytest
from rlcore import IdentityError
from rleaas import AsyncClient, Client
from rleaas.pytest_plugin import ServeEnvironment
from rleaas.testing import Answers, reply
from rlmesh import EnvServer


@pytest.fixture
def served(rlmesh_env_server: ServeEnvironment) -> EnvServer:
    return rlmesh_env_server("CartPole-v1")


def platform(server: EnvServer, digest: str | None = None) -> Answers:
    contract = server.env_contract
    return Answers(
        {
            "GET /api/environments/E": reply({"id": 1, "name": "E", "status": "ready"}),
            "GET /api/environments/E/endpoint": reply(
                {
                    "address": server.address,
                    "environment_name": "E",
                    "version": 3,
                    "contract_digest": contract.digest if digest is None else digest,
                }
            ),
        }
    )


def test_a_connected_environment_is_stepped_under_its_registered_identity(
    served: EnvServer,
) -> None:
    local = gymnasium.make("CartPole-v1")
    expected, _ = local.reset(seed=7)
    local.close()
    with Client(base_url="http://localhost", transport=platform(served).transport) as client:
        env = client.Environment.get("E").connect()

    observation, _ = env.reset(seed=7)
    assert observation.tolist() == expected.tolist()
    assert (env.identity.name, env.identity.version) == ("E", 3)
    env.close()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_awaiting_a_connection_gives_the_same_environment(served: EnvServer) -> None:
    answers = platform(served)
    async with AsyncClient(base_url="http://localhost", transport=answers.transport) as client:
        env = await (await client.Environment.get("E")).connect()

    assert env.reset(seed=7)[0].shape == (4,)
    env.close()


def test_another_environment_behind_the_name_is_an_identity_error(served: EnvServer) -> None:
    answers = platform(served, digest="sha256:" + "0" * 64)
    with Client(base_url="http://localhost", transport=answers.transport) as client:
        env = client.Environment.get("E")
        with pytest.raises(IdentityError):
            env.connect().reset(seed=7)
