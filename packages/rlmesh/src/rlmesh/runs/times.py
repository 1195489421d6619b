"""How long the calls of one player take, and how much of it a server says was its own."""

from typing import Protocol

from rlmesh.runs.telemetry import Telemetry


class Timing(Protocol):
    """How long a server had a call, in nanoseconds."""

    @property
    def total(self) -> int:
        """From when it was read until its answer was made; 0 where the server does not tell."""
        ...

    @property
    def user(self) -> int | None:
        """How much of that was the environment's or the model's own."""
        ...


class Times:
    """Counts the times of calls, in milliseconds.

    What goes over a wire is counted as `rpc.total`, and what is called in this process as
    `endpoint.total`.

    Args:
        telemetry: where they are counted.
        env_is_remote: whether the environment's calls go over a wire.
        model_is_remote: whether the model's do.

    Attributes:
        reset, step, predict: count what a call took.
        round: counts what a step with everything around it took.
        step_served, prediction_served: count what the server told of a call that took so long.
    """

    def __init__(self, telemetry: Telemetry, *, env_is_remote: bool, model_is_remote: bool) -> None:
        env, model = (
            "rpc.total" if far else "endpoint.total" for far in (env_is_remote, model_is_remote)
        )
        self.reset = telemetry.series("env.reset", "env", env).add
        self.step = telemetry.series("env.step", "env", env).add
        self.predict = telemetry.series("model.predict", "model", model).add
        self.round = telemetry.series("runner.round", "runner", "endpoint.total").add
        self.step_served = _Served(telemetry, "env.step", "env").note
        self.prediction_served = _Served(telemetry, "model.predict", "model").note


class _Served:
    """Counts what a server tells of one kind of call, as far as it tells.

    `rpc.wire` is what the caller waited beyond the server's `endpoint.total`: the transport both
    ways, and the values read and written on this side. It is 0 for an answer that was there before
    anybody waited for it.
    """

    def __init__(self, telemetry: Telemetry, op: str, component: str) -> None:
        self._total, self._user, self._wire = (
            telemetry.series(op, component, metric).add
            for metric in ("endpoint.total", "endpoint.user", "rpc.wire")
        )

    def note(self, took_ms: float, timing: Timing | None) -> None:
        if timing is None or not timing.total:
            return
        total_ms = timing.total / 1e6
        self._total(total_ms)
        self._wire(max(took_ms - total_ms, 0.0))
        if timing.user is not None:
            self._user(timing.user / 1e6)
