import pickle
from typing import Any

import numpy as np
import pytest
from rlcore import ConfigurationError
from rlmesh.models.context import EpisodeContext, PredictContext
from rlmesh.models.conversion import to_native, to_numpy
from rlmesh.models.model import Model, ModelTypeError
from rlmesh.models.numpy_model import Model as NumpyModel
from rlmesh.models.seeds import predict_seed
from rlmesh.models.sentinels import NO_ADAPTER, RANDOM_SAMPLE
from rlmesh.params import UnknownParamError
from rlmesh.values import Tensor


def ask(
    model: Model, observation: object, episode: EpisodeContext | None = None
) -> Any:  # Any: whatever the model answers
    return model.prediction()(observation, episode or EpisodeContext("e", 1))


class Doubling:
    closed = 0
    resets = 0

    def predict(self, observation: int) -> int:
        return 2 * observation

    def reset(self) -> None:
        self.resets += 1

    def close(self) -> None:
        self.closed += 1


def test_a_function_is_a_model() -> None:
    model = Model(lambda observation: observation + 1)

    assert ask(model, 1) == 2
    assert model.predict(1) == 2


def test_a_policy_object_is_a_model_with_its_reset_and_close() -> None:
    policy = Doubling()
    model = Model(policy)

    model.end_episode("e")
    model.close()
    model.close()

    assert (ask(model, 4), policy.resets, policy.closed) == (8, 1, 1)


def test_a_policy_class_is_made_without_arguments() -> None:
    assert ask(Model(Doubling), 3) == 6


def test_a_builtin_without_a_signature_is_called_with_the_observation() -> None:
    assert ask(Model(max), [1, 5]) == 5


def test_a_context_is_given_to_those_who_name_it() -> None:
    episode = EpisodeContext("e-1", 7)
    model = Model(lambda observation, context: dict(context))
    first, second = (ask(model, 0, episode) for _ in range(2))

    assert first == {
        "episode_id": "e-1",
        "episode_seed": 7,
        "predict_index": 0,
        "predict_seed": predict_seed(7, 0),
        "state": {},
    }
    assert isinstance(second, dict)
    assert second["predict_index"] == 1
    assert second["state"] is first["state"]


def test_a_second_parameter_of_another_name_is_left_alone() -> None:
    assert ask(Model(lambda observation, scale=3: observation * scale), 2) == 6


class Recurrent:
    """The signature of stable-baselines3's policies."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        count = 0 if episode_start[0] else state + 1
        return (count, deterministic), count


def test_a_recurrent_policy_keeps_its_state_within_an_episode() -> None:
    model = Model(Recurrent())
    first, second = EpisodeContext("a", 0), EpisodeContext("b", 1)

    answers = [ask(model, 0, first) for _ in range(2)]

    assert answers == [(0, True), (1, True)]
    assert ask(model, 0, second) == (0, True)
    assert ask(Model(Recurrent(), deterministic=False), 0) == (0, False)


class Loaded(Model[int, int]):
    gain = 0

    def load(self, gain: int = 10) -> None:
        self.gain = gain

    def predict(self, observation: int) -> int:
        return self.gain * observation


def test_a_subclass_is_loaded_once_and_predicts() -> None:
    assert ask(Loaded(), 2) == 20
    assert Loaded().predict(2) == 20
    assert ask(Loaded.from_config(gain=5), 2) == 10


def test_a_subclass_may_take_the_context() -> None:
    class Seeded(Model):
        def predict(self, observation: int, context: PredictContext) -> int | None:
            return context["episode_seed"]

    assert ask(Seeded(), 0, EpisodeContext("e", 12)) == 12


def test_configuration_that_load_does_not_take_is_refused() -> None:
    with pytest.raises(UnknownParamError, match=r"Loaded\.load has no parameter 'gian'"):
        Loaded.from_config(gian=5)
    with pytest.raises(ModelTypeError, match="no way to predict"):
        Model.from_config(gain=5)


def test_an_episode_hook_may_leave_the_id_out() -> None:
    ended: list[str] = []

    class Counting(Model):
        def predict(self, observation: int) -> int:
            return observation

        def on_episode_end(self) -> None:
            ended.append("subclass")

    Counting().end_episode("e1")
    Model(max, on_episode_end=ended.append).end_episode("e2")
    Model(max, on_episode_end=lambda: ended.append("plain")).end_episode("e3")

    assert ended == ["subclass", "e2", "plain"]


@pytest.mark.parametrize("source", [None, 3, "policy", Model(max), Model, Loaded])
def test_what_cannot_predict_is_refused(source: object) -> None:
    with pytest.raises(ModelTypeError) as caught:
        Model(source)

    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ConfigurationError)


def test_a_subclass_that_defines_reset_is_refused() -> None:
    with pytest.raises(TypeError, match="on_episode_end"):
        type("Resetting", (Model,), {"reset": max})


def test_a_spec_of_another_kind_is_refused() -> None:
    unheard_of: Any = "robot"
    assert Model(max, spec=NO_ADAPTER).spec is NO_ADAPTER
    with pytest.raises(ModelTypeError, match="NO_ADAPTER"):
        Model(max, spec=unheard_of)


def test_a_model_is_called_by_the_name_of_what_it_wraps() -> None:
    assert Model(Doubling()).name == "Doubling"
    assert Model(Doubling.predict).name == "Doubling.predict"
    assert Loaded().name == "Loaded"
    assert Model(max, name="best", digest="sha256:1").name == "best"


def test_sentinels_pickle_to_themselves() -> None:
    assert pickle.loads(pickle.dumps(RANDOM_SAMPLE)) is RANDOM_SAMPLE
    assert repr(NO_ADAPTER) == "rlmesh.NO_ADAPTER"


def test_native_values_hold_tensors_and_plain_numbers() -> None:
    value = {"a": np.arange(3, dtype=np.float32), "b": (np.int64(4), [np.bool_(True), "text"])}

    native = to_native(value)

    expected = Tensor(np.arange(3, dtype=np.float32).tobytes(), [3], "float32")
    assert native == {"a": expected, "b": (4, [True, "text"])}


def test_numpy_values_hold_arrays_of_their_own() -> None:
    tensor = Tensor(b"\x01\x02", [2], "uint8")

    array: Any = to_numpy({"a": [tensor]})

    assert array["a"][0].tolist() == [1, 2]
    assert array["a"][0].flags.writeable


def test_the_numpy_model_is_a_model() -> None:
    assert NumpyModel(max).backend == "numpy"
    assert isinstance(NumpyModel(max), Model)


def test_variadic_and_positional_functions_get_the_context_too() -> None:
    def variadic(*args: Any) -> int:
        return len(args)

    def positional(observation: Any, context: PredictContext, /) -> str:
        return context["episode_id"]

    assert ask(Model(variadic), 0) == 2
    assert ask(Model(positional), 0) == "e"


def test_predicting_by_hand_passes_a_context_on() -> None:
    model = Model(lambda observation, context: context["episode_id"])

    assert model.predict(0) == ""
    assert model.predict(0, EpisodeContext("mine", None).following()) == "mine"


def test_a_model_that_inherits_no_predict_says_so() -> None:
    class Empty(Model):
        def __init__(self) -> None:
            """Leave everything to the class, which has nothing."""

    with pytest.raises(ModelTypeError, match="needs something to predict with"):
        Empty().predict(0)


def test_the_shorthands_take_what_the_functions_take() -> None:
    """`rlmesh.session` and `rlmesh.run`, which have the model before the rest."""
    import inspect
    from typing import get_type_hints

    from rlmesh.runs.run import run
    from rlmesh.runs.session import session
    from rlmesh.runs.settings import RunArguments

    wanted = set(inspect.signature(session).parameters) - {"model"}
    assert set(inspect.signature(Model.session).parameters) - {"self"} == wanted
    assert set(get_type_hints(RunArguments)) == set(inspect.signature(run).parameters) - {
        "model",
        "env",
    }


def test_the_instance_of_a_method_may_have_any_name() -> None:
    class Odd(NumpyModel[Any, Any]):
        def load(this, weight: int = 0) -> None:  # noqa: N805  # pyright: ignore[reportSelfClsParameterName]  # the name is tested
            this.weight = weight

        def predict(self, observation: Any) -> Any:
            return self.weight

    assert Odd.from_config(weight=3).predict(None) == 3


def test_a_model_that_was_never_served_can_be_shut_down() -> None:
    NumpyModel(max).shutdown()
