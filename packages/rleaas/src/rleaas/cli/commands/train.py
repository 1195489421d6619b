"""`rleaas train …`: the same words and the same code as `python -m rleaas.training_cli`."""

from __future__ import annotations

import typer

AS_WRITTEN: dict[str, object] = {
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "allow_extra_args": True,
    "help_option_names": [],
}
"""Every word goes to the training program, `--help` too."""


def train(context: typer.Context) -> int:
    """Start the trainings of a config.json; `rleaas train --help` lists the words."""
    from rleaas.cli.training.program import run

    return run(context.args or ["--help"], "rleaas train")
