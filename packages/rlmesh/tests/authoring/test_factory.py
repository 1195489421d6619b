from collections.abc import Callable
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
import rlmesh
from gymnasium import spaces
from rlcore import EnvironmentException
from rlmesh import EnvFactory, Param, ParamSpec
from rlmesh.params import ParamError, UnknownParamError

TAGS: dict[str, Any] = {
    "observation": {"type": "state", "role": "proprio/eef_pos"},
    "action": {"components": []},
}
TAGS_KEY, BRANCH_KEY = "rlmesh.adapters.v1.env_tags", "rlmesh.adapters.v1.env_branch"
OPTIONS_KEY, BINDING_KEY = rlmesh.ENV_RESET_OPTIONS_KEY, "rlmesh.params.v1.binding"
CLASS_METADATA: dict[str, Any] = {"render_modes": ["rgb_array"]}
ROBOT = Param("robot", "enum", choices=("arm", "hand"))


class Env(gymnasium.Env[Any, Any]):
    metadata = CLASS_METADATA

    def __init__(self, size: int = 1) -> None:
        self.observation_space = spaces.Box(-1, 1, (size,), np.float32)
        self.action_space = spaces.Discrete(2)


class Tagged(EnvFactory):
    tags = TAGS
    params = ParamSpec(ROBOT, Param("size", int))
    tag_params = ("robot",)
    reset_options = ("trial_index",)

    def make(self, size: int = 1, robot: str = "arm") -> Env:
        return Env(size)

    @classmethod
    def tags_for(cls, **params: Any) -> object:
        return {**TAGS, "hand": True} if params["robot"] == "hand" else TAGS


class Objects:
    def to_dict(self) -> dict[str, Any]:
        return TAGS


def test_what_is_made_carries_what_the_class_declares_and_its_class_does_not() -> None:
    env = Tagged().make(robot="hand")

    assert env.metadata == {
        **CLASS_METADATA,
        TAGS_KEY: {**TAGS, "hand": True},
        BRANCH_KEY: {"robot": "hand"},
        OPTIONS_KEY: ["trial_index"],
    }
    assert Env.metadata is CLASS_METADATA
    assert CLASS_METADATA == {"render_modes": ["rgb_array"]}


def test_the_default_branch_is_named_too() -> None:
    assert Tagged().make().metadata[BRANCH_KEY] == {"robot": "arm"}


def test_tags_may_be_objects_of_their_own_and_wrapped_environments_carry_them() -> None:
    class Wrapping(EnvFactory):
        tags = Objects()

        def make(self) -> Any:
            return gymnasium.wrappers.TimeLimit(Env(), 3)

    env = Wrapping().make()

    assert env.metadata[TAGS_KEY] == TAGS
    assert TAGS_KEY not in env.unwrapped.metadata


def test_a_factory_that_declares_nothing_leaves_its_environments_alone() -> None:
    class Plain(EnvFactory):
        def make(self) -> Env:
            return Env()

    assert Plain().make().metadata is CLASS_METADATA


def test_each_lane_of_a_list_is_marked() -> None:
    class Pairs(EnvFactory):
        reset_options = ("trial_index",)

        def make(self) -> Any:
            return [Env(), Env()]

    assert [env.metadata[OPTIONS_KEY] for env in Pairs().make()] == [["trial_index"]] * 2


def test_an_environment_that_takes_no_attributes_is_a_typed_failure() -> None:
    class Slotted:
        __slots__ = ()

    class Closed(EnvFactory):
        reset_options = ("trial_index",)

        def make(self) -> Any:
            return Slotted()

    with pytest.raises(EnvironmentException, match=r"which .*Closed made, takes no attributes"):
        Closed().make()


@pytest.mark.parametrize(
    ("kwargs", "error", "reason"),
    [
        ({"size": "3"}, ParamError, "size: expected int, got str"),
        ({"sise": 3}, UnknownParamError, r"Did you mean 'size'\?"),
        ({"robot": "leg"}, ParamError, r"robot: 'leg' is not one of \['arm', 'hand'\]"),
    ],
)
def test_parameters_are_checked_before_anything_is_made(
    kwargs: dict[str, Any], error: type[ParamError], reason: str
) -> None:
    made: list[object] = []

    class Noting(Tagged):
        def make(self, size: int = 1, robot: str = "arm") -> Env:
            made.append(size)
            return super().make(size=size, robot=robot)

    for call in (Noting().make, Noting().start, Noting().serve, Noting().with_params):
        with pytest.raises(error, match=reason):
            call(**kwargs)
    assert made == []
    assert Noting().make(2.0, "hand").metadata[BRANCH_KEY] == {"robot": "hand"}  # type: ignore[arg-type]
    assert made == [2]


def test_a_wrong_call_is_told_in_the_words_of_python() -> None:
    with pytest.raises(TypeError, match="multiple values for argument 'size'"):
        Tagged().make(1, size=2)  # type: ignore[misc]  # the point of the test
    with pytest.raises(TypeError, match="too many positional arguments"):
        Tagged().make(1, "arm", 3)  # type: ignore[call-arg]  # the point of the test


def test_without_declared_parameters_names_are_checked_and_values_passed() -> None:
    class Open(EnvFactory):
        def make(self, size: int = 1) -> Env:
            self.size: object = size
            return Env()

    factory = Open()
    factory.make(size="whatever")  # type: ignore[arg-type]  # the point of the test
    assert factory.size == "whatever"
    with pytest.raises(UnknownParamError, match=r"Did you mean 'size'\?"):
        factory.make(sizes=1)  # type: ignore[call-arg]  # the point of the test


def make_class(**body: Any) -> type[EnvFactory]:
    def make(self: Any, n: int = 1, robot: str = "arm") -> Any:
        return Env(n)

    return type("Made", (EnvFactory,), {"make": make, **body})


def takes_anything(self: object, **more: object) -> Any:
    return Env()


def tags_as(give: Callable[[str], object]) -> object:
    def tags_for(cls: type, robot: str = "arm") -> object:
        return give(robot)

    return cast("object", classmethod(cast("Any", tags_for)))


NINE = Param("n", int, choices=tuple(range(9)))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"tag_params": ("robot",)}, "names 'robot', which params does not declare"),
        (
            {"params": ParamSpec(Param("robot")), "tag_params": ("robot",)},
            "names 'robot', which has no choices",
        ),
        (
            {"params": ParamSpec(Param("x", choices=("a",)), extra="passthrough"),
             "make": takes_anything, "tag_params": ("x",)},
            r"names 'x', for which make\(\) has no default",
        ),
        ({"params": ParamSpec(NINE), "tag_params": ("n",)}, "select among 9 contracts"),
        (
            {"params": ParamSpec(ROBOT), "tag_params": ("robot",), "tags": TAGS,
             "tags_for": tags_as(lambda robot: TAGS if robot == "arm" else None)},
            "gives tags for some choices of .* and none for others",
        ),
        (
            {"params": ParamSpec(ROBOT), "tag_params": ("robot",), "tags": TAGS,
             "tags_for": tags_as(lambda robot: {"robot": robot})},
            "tags differ from what tags_for gives for the defaults",
        ),
        (
            {"params": ParamSpec(ROBOT), "tag_params": ("robot",),
             "tags_for": tags_as(dict[str, object]().__getitem__)},
            "raised KeyError",
        ),
        ({"tags_for": tags_as(lambda _: TAGS)}, r"overrides tags_for\(\) and has no tag_par"),
        ({"tags": 3}, "tags are 3"),
        ({"params": {"n": 1}}, "params is {'n': 1}"),
        ({"tag_params": "robot"}, "tag_params is 'robot'"),
        ({"reset_options": ("trial_indx",)}, r"\['trial_indx'\], which nothing delivers"),
        ({"workflow_edition": "1999.01"}, "workflow edition '1999.01' is not one"),
        ({"serve": takes_anything}, r"overrides serve\(\), which is final"),
    ],
)  # fmt: skip
def test_a_class_that_contradicts_itself_is_not_created(body: dict[str, Any], reason: str) -> None:
    with pytest.raises(TypeError, match=reason) as caught:
        make_class(**body)

    assert isinstance(caught.value, rlmesh.ConfigurationError)


def test_a_default_that_is_no_choice_is_found_when_the_class_is_created() -> None:
    with pytest.raises(ParamError, match=r"default of a parameter of .*make.*n: 1 is less than 2"):
        make_class(params=ParamSpec(Param("n", int, minimum=2)))


def test_a_class_without_make_makes_nothing_and_may_be_a_base() -> None:
    class Base(EnvFactory):
        reset_options = ("trial_index",)

    class Real(Base):
        def make(self) -> Env:
            return Env()

    with pytest.raises(TypeError, match="abstract"):
        Base()  # type: ignore[abstract]  # the point of the test
    assert Real().make().metadata[OPTIONS_KEY] == ["trial_index"]


def test_what_is_bound_says_what_it_was_made_with() -> None:
    made = Tagged().with_params(size=2.0).make()

    record = made.metadata[BINDING_KEY]
    assert record["binding"] == {"size": 2}
    assert record["validated"] == {"size": True}
    assert [param["name"] for param in record["param_spec"]["params"]] == ["robot", "size"]


@pytest.mark.parametrize("name", ["torch", "jax", "numpy"])
def test_a_framework_has_a_factory_of_its_own(name: str) -> None:
    from rlmesh.authoring.marks import framework_of

    room: Any = getattr(rlmesh, name)

    theirs = type("Theirs", (room.EnvFactory,), {"make": takes_anything})

    assert issubclass(room.EnvFactory, EnvFactory)
    assert framework_of(theirs().make()) == (None if name == "numpy" else name)


def test_the_description_of_a_class_is_its_own_too(authored: Any) -> None:
    assert authored.Lines.describe() == rlmesh.describe(authored.Lines)
