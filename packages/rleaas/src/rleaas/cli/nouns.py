"""Nouns whose commands are read when somebody asks for them, so that `rleaas` starts at once."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

MARKUP: Final = "markdown"


class Noun(NamedTuple):
    """A noun: its name, what it is for, the panel of `--help` that has it, and its modules."""

    name: str
    help: str
    panel: str
    modules: tuple[str, ...]


def noun(name: str) -> typer.Typer:
    """Return what the commands of a noun are added to; the tree says what the noun is for."""
    return typer.Typer(name=name, no_args_is_help=True, rich_markup_mode=MARKUP)


class LazyGroup(TyperGroup):
    """The commands of a noun; its modules are imported when the first of them is asked for."""

    def __init__(self, one: Noun) -> None:
        super().__init__(
            name=one.name,
            help=one.help,
            no_args_is_help=True,
            rich_markup_mode=MARKUP,
            rich_help_panel=one.panel,
        )
        self._modules = one.modules

    # Typer vends the context of a library that it brings along, which has no public name.
    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of the modules."""
        self._load()
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name; None: there is none."""
        self._load()
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments begin with, or fail and name those near it."""
        self._load()
        return super().resolve_command(ctx, args)

    def _load(self) -> None:
        if self.commands:
            return
        apps = [import_module(f"rleaas.cli.commands.{module}").app for module in self._modules]
        self.commands.update(get_group(apps[-1]).commands)


class Panels(TyperGroup):
    """The root: its commands and its nouns, a panel after the other."""

    nouns: tuple[Noun, ...] = ()
    panels: tuple[str, ...] = ()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for one in self.nouns:
            self.add_command(LazyGroup(one))

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of their panels."""
        return sorted(self.commands, key=self._place)

    def _place(self, name: str) -> int:
        command = self.commands[name]
        panel = command.rich_help_panel if isinstance(command, TyperCommand | TyperGroup) else None
        return self.panels.index(panel) if panel in self.panels else len(self.panels)
