"""How long the scheduler waits before it does what a worker did not do."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the scheduler waits, in seconds.

    Attributes:
        tick: between two looks.
        to_cancel: for a worker to save its work after a cancel, also one that hangs in a step.
        to_terminate: between SIGTERM and SIGKILL.
        to_exit: for a worker that has reported its end.
        to_report: for any report, such as a heartbeat.
        to_stop: for workers to save their work when the server stops.
        to_restart: before a worker that died is started again; longer each time.
    """

    tick: float = 0.2
    to_cancel: float = 7.0
    to_terminate: float = 2.0
    to_exit: float = 15.0
    to_report: float = 300.0
    to_stop: float = 15.0
    to_restart: float = 1.0
