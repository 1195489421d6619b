"""How the training commands end: the codes, and what they stand for."""

from __future__ import annotations

from typing import Final

from rleaas.cli import failures

EPILOG: Final = (
    f"exit codes: 0 done, {failures.FAILURE} failure, {failures.USAGE} wrong words, "
    f"{failures.NOT_FOUND} not found, {failures.ACCESS} access denied,\n"
    f"{failures.UNREACHABLE} server unreachable, {failures.CANCELLED} job cancelled, "
    f"{failures.AWAITS_VERDICT} job awaits a human verdict,\n"
    f"{failures.JOB_FAILED} job failed, {failures.TIMED_OUT} timeout, "
    f"{failures.BAD_CONFIG} the config file is wrong, {failures.INTERRUPTED} interrupted"
)
"""For `--help`."""
