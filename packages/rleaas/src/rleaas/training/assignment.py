"""What the server tells a worker to do: the answer of `GET /api/worker/{kind}/{id}/assignment`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from rlcore import Endpoint, EnvironmentIdentity, EnvironmentURI, UnexpectedReply, resolve


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class AssignedEnvironment(_Part):
    """The registered environment to use."""

    name: str
    version: int
    contract_digest: str

    @property
    def identity(self) -> EnvironmentIdentity:
        """The identity that results carry."""
        return EnvironmentIdentity(self.name, self.version, self.contract_digest)

    def endpoint(self, *, timeout: float) -> Endpoint:
        """Ask the platform where the environment is served, like anybody else does.

        Raises:
            rlcore.Error: it is not served, or is not the version that the job was given.
        """
        return resolve(str(EnvironmentURI(self.name, self.version)), timeout=timeout)


class AssignedCheckpoint(_Part):
    """A stored checkpoint file.

    `same_job` says that it is the job's own, from which a restart goes on exactly.
    """

    id: str
    sha256: str
    algorithm: str
    state_sha256: str | None = None
    episode: int = 0
    timestep: int | None = None
    same_job: bool = False


class TrainingAssignment(_Part):
    """One training job; `contract` is that of its environment, as the platform has it."""

    id: str
    environment: AssignedEnvironment
    algorithm: str
    num_episodes: int
    max_steps: int
    config: dict[str, object]
    attempt: int = 1
    run_name: str | None = None
    tracking_directory: str | None = None
    seed: int | None = None
    warnings: list[str] = []
    contract: dict[str, object] | None = None
    verifiers: dict[str, object] | None = None
    scenarios: dict[str, object] | None = None
    resume: AssignedCheckpoint | None = None


class EvaluationAssignment(_Part):
    """One evaluation: of a checkpoint, of an agent, or of the rollouts of another evaluation.

    `contract` is that of its environment, `trained_contract` that of the checkpoint's. An agent
    that is an object is a language model, which the server asks at `complete_at`; `world` is what
    the environment serves, where that is a built-in world: its `vertical` and `config`. `seeding`
    says how policies' randomness is drawn: 1 where requests of before say nothing of it.
    """

    id: str
    environment: AssignedEnvironment
    checkpoint: AssignedCheckpoint | None = None
    agent: str | dict[str, object] | None = None
    complete_at: str | None = None
    world: dict[str, object] | None = None
    attempt: int = 1
    seeds: list[int]
    repetitions: int = 1
    seeding: int = 1
    num_workers: int = 1
    max_episode_steps: int | None = None
    success_threshold: float | None = None
    pass_threshold: float | None = None
    scenarios: dict[str, object] | None = None
    verifiers: dict[str, object] | None = None
    contract: dict[str, object] | None = None
    trained_contract: dict[str, object] | None = None
    trained_contract_digest: str | None = None
    journal_directory: str | None = None
    source_evaluation_id: str | None = None
    source_rollouts: list[str] = []


A = TypeVar("A", bound=_Part)


def read_assignment(shape: type[A], reply: Mapping[str, object]) -> A:
    """The typed assignment.

    Raises:
        UnexpectedReply: the server sent something else.
    """
    try:
        return shape.model_validate(reply)
    except ValidationError as error:
        raise UnexpectedReply(
            f"the server's assignment is not a {shape.__name__}: {error}",
            hint="Server and worker must be of the same version",
        ) from error
