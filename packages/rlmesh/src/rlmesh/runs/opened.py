"""A model and the environments it is run on: opened together, and closed whatever happens."""

from collections.abc import Callable
from typing import cast

from rlcore import ConfigurationError

from rlmesh.models.policy import Policy, policy_for
from rlmesh.protocol.editions import declared_edition
from rlmesh.runs.arguments import count_given
from rlmesh.runs.provenance import Plain
from rlmesh.runs.seat import Seat
from rlmesh.runs.settings import RunArguments
from rlmesh.runs.targets import Targets, open_targets


class Opened:
    """What a run or a session holds open.

    Args:
        model: what can predict.
        env: what can be stepped, or made or dialled into that.
        arguments: those of a run; the ones that are about episodes are not looked at.

    Attributes:
        policy: the model, bound to this.
        seats: the environments.
        shaping: the arguments that shape episodes, as plain values.

    Raises:
        ModelTypeError: the model is none.
        Error: as `open_targets`.
    """

    def __init__(self, model: object, env: object, arguments: RunArguments) -> None:
        horizon = arguments.get("execution_horizon", 1)
        lead = arguments.get("prefetch_lead", 0)
        instruction = arguments.get("instruction")
        check_binding(arguments)
        self.shaping: dict[str, Plain] = {}
        if horizon != 1:
            self.shaping["execution_horizon"] = horizon
        if lead:
            self.shaping["prefetch_lead"] = lead
        if instruction is not None:
            self.shaping["instruction"] = instruction
        self.policy: Policy = policy_for(
            model, execution_horizon=horizon, prefetch_lead=lead, instruction=instruction
        )
        try:
            self._targets: Targets = open_targets(
                env,
                framework=self.policy.framework,
                num_workers=count_given(arguments.get("num_workers"), "num_workers", least=1),
                workflow_edition=arguments.get("workflow_edition"),
            )
        except BaseException as error:
            _noting(self.policy.close, error)
            raise
        self.seats = [Seat(target) for target in self._targets.each]

    def close(self, *, close_env: bool, first: Callable[[], object] | None = None) -> None:
        """Close everything, each part whatever became of those before it.

        A Ctrl-C meanwhile is heard when all is closed, so that no process stays behind.

        Args:
            close_env: also close environments that were given, and shut down a server that was
                given by its address, where it allows that.
            first: what to close before.

        Raises:
            Exception: what the first part raised that could not be closed, or KeyboardInterrupt.
        """
        parts: list[Callable[[], object]] = [] if first is None else [first]
        parts.append(self._targets.closing)
        parts += [_closing(seat, close_env) for seat in self.seats]
        parts += [self.policy.close, self._targets.close]
        failure: BaseException | None = None
        for close in parts:
            try:
                close()
            except BaseException as error:
                if failure is None or isinstance(error, KeyboardInterrupt):
                    failure = error
        if failure is not None:
            raise failure

    def close_after(
        self, error: BaseException, *, close_env: bool, first: Callable[[], object] | None = None
    ) -> None:
        """Close everything after a failure, which learns what fails besides."""
        _noting(lambda: self.close(close_env=close_env, first=first), error)


def check_binding(arguments: RunArguments) -> None:
    """Do nothing where the arguments that say how a model is used are of the right kind.

    Raises:
        ConfigurationError: one is not.
    """
    for name in ("instruction", "workflow_edition"):
        text: object = arguments.get(name)
        if not isinstance(text, str | None):
            raise ConfigurationError(f"{name} is {text!r}", hint="give a text, or None")
    declared_edition(arguments.get("workflow_edition"))
    trusted = arguments.get("trust_entrypoints")
    if not isinstance(cast("object", trusted), bool | None):
        raise ConfigurationError(
            f"trust_entrypoints is {trusted!r}", hint="give True, False or None"
        )


def _closing(seat: Seat, close_env: bool) -> Callable[[], None]:
    return lambda: seat.close(close_env=close_env)


def _noting(close: Callable[[], object], error: BaseException) -> None:
    try:
        close()
    except BaseException as second:  # what ended the run is what is raised
        error.add_note(f"Closing failed as well: {type(second).__name__}: {second}")
