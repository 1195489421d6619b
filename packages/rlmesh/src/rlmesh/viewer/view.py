"""`rlmesh.View`: what a run is watched with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, cast

from rlcore import ConfigurationError

BACKENDS: Final = ("terminal", "http", "both")
FORMATS: Final = ("jpeg", "png")
DEFAULT_PORT: Final = 8008
_TERMINAL_WORDS: Final = ("terminal", "term", "tty", "")

MOST_FPS: Final = 1000


class ViewTypeError(ConfigurationError, TypeError):
    """What was given is of a type that no view can be made of."""

    default_code = "not_a_view"


@dataclass(frozen=True, slots=True)
class View:
    """How a run is watched live: `rlmesh.run(model, env, view=View("http"))`.

    Watching is best effort. Where there is no terminal, the port is taken, or nothing can be
    looked at, a `UserWarning` says so, and the run goes on.

    Args:
        backend: `terminal`, `http` (a page for a browser on this machine), or `both`.
        port: where the page is, 1 to 65535 on 127.0.0.1; 0 for a free one, see `address`.
        fps: how many frames a second are drawn at most, 1 to 1000.
        source: the label of what is shown first, such as `render` or the path of a camera in the
            observation; by default the first there is.
        format: how the page's frames are sent: `jpeg`, which needs PyAV (`rlmesh[video]`) or
            Pillow, or `png`.
        quality: of JPEG frames, from 1 to 100.

    Raises:
        ConfigurationError: a value is out of range; a `ValueError`.
        ViewTypeError: a value is of the wrong type; a `TypeError` as well.
    """

    backend: Literal["terminal", "http", "both"] = "terminal"
    port: int = DEFAULT_PORT
    fps: float = 30
    source: str | None = None
    format: Literal["jpeg", "png"] = "jpeg"
    quality: int = 75
    _opened: list[str] = field(default_factory=list[str], init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _among("backend", self.backend, BACKENDS)
        _among("format", self.format, FORMATS)
        if not 0 <= _whole("port", self.port) <= 65535:
            hint = "give 1 to 65535, or 0 for a free one"
            raise ConfigurationError(f"port is {self.port}", hint=hint)
        fps = self.fps if isinstance(self.fps, float) else _whole("fps", self.fps)
        if not 1 <= fps <= MOST_FPS:
            raise ConfigurationError(f"fps is {fps}", hint=f"give 1 to {MOST_FPS}")
        if not 1 <= _whole("quality", self.quality) <= 100:
            raise ConfigurationError(f"quality is {self.quality}", hint="give 1 to 100")
        if self.source is not None and not isinstance(cast("object", self.source), str):
            raise ViewTypeError(f"source is {self.source!r}", hint="give the label of a source")

    @property
    def address(self) -> str | None:
        """Where the page is, such as `http://127.0.0.1:8008/`, while a run shows one; else None."""
        return self._opened[-1] if self._opened else None

    def page_opened(self, address: str) -> None:
        """Remember where a page of this view is."""
        self._opened.append(address)

    def page_closed(self, address: str) -> None:
        """Forget it."""
        self._opened.remove(address)


def view_of(argument: object) -> View:
    """Return the view that a `view=` argument asks for: True, a text, or a `View`.

    Raises:
        ConfigurationError: a text that asks for none.
        ViewTypeError: of another type.
    """
    if isinstance(argument, View):
        return argument
    if argument is True:
        return View()
    hint = "give True, 'terminal', 'http', 'http:PORT', 'both' or a View"
    if not isinstance(argument, str):
        raise ViewTypeError(f"view is {argument!r}", hint=hint)
    text = argument.strip().lower()
    if text in _TERMINAL_WORDS:
        return View()
    name, colon, port = text.partition(":")
    if name == "http" and colon and port.isascii() and port.isdigit():
        return View("http", port=int(port))
    if text == "http":
        return View("http")
    if text == "both":
        return View("both")
    raise ConfigurationError(f"view is {argument!r}", hint=hint)


def _among(name: str, value: object, known: tuple[str, ...]) -> None:
    if not isinstance(value, str):
        raise ViewTypeError(f"{name} is {value!r}", hint=f"give one of {', '.join(known)}")
    if value not in known:
        raise ConfigurationError(f"{name} is {value!r}", hint=f"give one of {', '.join(known)}")


def _whole(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ViewTypeError(f"{name} is {value!r}", hint="give a whole number")
    return value
