"""How a failure leaves the command line: one `error:` line, a hint, and an exit code."""

from __future__ import annotations

import errno
import sys
from typing import Final, Protocol, TypeGuard, runtime_checkable

from rlcore import (
    AccessDenied,
    AuthenticationError,
    ConfigurationError,
    Error,
    EvaluationCancelled,
    EvaluationFailed,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    PlatformTimeout,
    PlatformUnreachable,
    ServerUnreachable,
    TrainingJobCancelled,
    TrainingJobFailed,
)

FAILURE = 1
USAGE = 2
NOT_FOUND = 3
ACCESS = 4
UNREACHABLE = 5
CANCELLED = 6
AWAITS_VERDICT = 7
JOB_FAILED = 8
TIMED_OUT = 9
BAD_CONFIG = 10
INTERRUPTED = 130
UNUSABLE_ARGUMENT: Final = "unusable_argument"
CONFIG_FILE: Final = "config_file"
"""The code of errors about a config.json."""

# The first class that matches decides.
_EXIT_CODES: tuple[tuple[type[Error], int], ...] = (
    (NotFoundError, NOT_FOUND),
    (AuthenticationError, ACCESS),
    (PermissionDeniedError, ACCESS),
    (AccessDenied, ACCESS),
    (PlatformUnreachable, UNREACHABLE),
    (ServerUnreachable, UNREACHABLE),
    (TrainingJobCancelled, CANCELLED),
    (EvaluationCancelled, CANCELLED),
    (TrainingJobFailed, JOB_FAILED),
    (EvaluationFailed, JOB_FAILED),
    (PlatformTimeout, TIMED_OUT),
    (InvalidRequestError, USAGE),
    (ConfigurationError, USAGE),
)


@runtime_checkable
class UsageFailure(Protocol):
    """What typer raises for a wrong option or argument, whichever version it is."""

    exit_code: int

    def format_message(self) -> str:
        """Return the sentence for the user."""
        ...


def exit_code_of(error: BaseException) -> int:
    """Return the exit code that tells a script what kind of failure this is."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, UsageFailure):
        return error.exit_code
    if isinstance(error, ConfigurationError) and error.code == CONFIG_FILE:
        return BAD_CONFIG
    for kind, code in _EXIT_CODES:
        if isinstance(error, kind):
            return code
    return FAILURE


def say_failure(error: BaseException) -> None:
    """Write what failed, and what to do next, to stderr."""
    message, hint = _sentence_and_hint(error)
    if not message:
        return  # a noun alone: its help was the answer
    print(f"error: {_on_one_line(message)}", file=sys.stderr)
    if hint:
        print(f"hint: {_on_one_line(hint)}", file=sys.stderr)
    request_id = error.request_id if isinstance(error, Error) else None
    if request_id:
        print(f"request: {_on_one_line(request_id)}", file=sys.stderr)


def is_of_output(error: BaseException) -> TypeGuard[OSError]:
    """Whether what failed is writing what a command prints, as to a disk that is full."""
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
    return isinstance(error, OSError) and error.filename is None and error.errno in full


def _on_one_line(text: str) -> str:
    # What a server says must not move a terminal's cursor, nor look like a line of ours.
    joined = " ".join(text.split())
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in joined)


def _sentence_and_hint(error: BaseException) -> tuple[str, str | None]:
    if isinstance(error, Error):
        if (
            error.code == UNUSABLE_ARGUMENT and error.__cause__
        ):  # its sentence is for those who call the SDK
            return f"an argument cannot be used: {error.__cause__}", error.hint
        return error.message, error.hint or _usual_hint(error)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", None
    if isinstance(error, UsageFailure):
        context = getattr(error, "ctx", None)
        command = getattr(context, "command_path", "rleaas")
        return error.format_message(), f"see `{command} --help`"
    if isinstance(error, OSError) and isinstance(error.filename, str):
        return f"cannot use {error.filename!r}: {error.strerror}", None
    if is_of_output(error):
        return f"the output cannot be written: {error.strerror}", None
    return (
        f"{type(error).__name__}: {error}",
        "this is a fault of rleaas; `rleaas --debug …` shows where it happened",
    )


def _usual_hint(error: Error) -> str | None:
    if isinstance(error, AuthenticationError):
        return "set RLEAAS_API_KEY, or pass --api-key"
    if isinstance(error, NotFoundError):
        return _LISTINGS.get(error.kind)
    if isinstance(error, PlatformUnreachable):
        return "`rleaas serve` runs one here; --base-url or RLEAAS_BASE_URL names another"
    return None


_LISTINGS = {
    "agent": "`rleaas agent list` shows the agents",
    "api_key": "`rleaas keys list` shows the keys",
    "audit_event": "`rleaas audit list` shows the records",
    "checkpoint": "`rleaas job checkpoints JOB_ID` shows a job's checkpoints",
    "data_asset": "`rleaas data list` shows the assets",
    "deployment": "`rleaas deploy list` shows the deployments",
    "environment": "`rleaas env list` shows what is registered",
    "evaluation": "`rleaas eval list` shows the evaluations",
    "member": "`rleaas org members ORGANISATION` shows who is in",
    "organisation": "`rleaas org list` shows the organisations",
    "rollout": "`rleaas rollout list` shows the rollouts",
    "scenario": "`rleaas scenario list` shows the scenarios",
    "suite": "`rleaas suite list` shows the suites",
    "tool": "`rleaas tool list` shows the tools",
    "training_job": "`rleaas job list` shows the jobs",
    "verifier": "`rleaas verifier list` shows the verifiers",
    "webhook": "`rleaas webhook list` shows the webhooks",
}
