from typing import Any

import pytest
import rlmesh
from rlcore import ConfigurationError
from rlmesh.runs.views import open_view
from rlmesh.viewer.view import View, view_of


def test_a_view_is_the_terminal_by_default() -> None:
    view = rlmesh.View()
    assert (view.backend, view.port, view.fps, view.source, view.format, view.quality) == (
        "terminal",
        8008,
        30,
        None,
        "jpeg",
        75,
    )
    assert view.address is None


@pytest.mark.parametrize(
    ("argument", "view"),
    [
        (True, View()),
        ("terminal", View("terminal")),
        ("term", View("terminal")),
        ("tty", View("terminal")),
        ("", View("terminal")),
        ("HTTP", View("http")),
        ("http:9001", View("http", port=9001)),
        ("http:0", View("http", port=0)),
        ("both", View("both")),
        (View("http", fps=2.5), View("http", fps=2.5)),
    ],
)
def test_a_view_can_be_asked_for_in_few_words(argument: object, view: View) -> None:
    assert view_of(argument) == view


@pytest.mark.parametrize("argument", [None, False])
def test_no_view_is_opened_where_none_is_wanted(argument: object) -> None:
    assert open_view(argument) is None


@pytest.mark.parametrize("argument", ["browser", "http:", "http:80x", "both:80", "http:70000"])
def test_a_text_that_asks_for_no_view_is_a_value_error(argument: str) -> None:
    with pytest.raises(ValueError, match=r"view is|port is") as caught:
        open_view(argument)
    assert isinstance(caught.value, ConfigurationError)


@pytest.mark.parametrize("argument", [1, 8008, object(), ["http"]])
def test_what_is_no_view_is_a_type_error_as_well(argument: object) -> None:
    with pytest.raises(TypeError, match="view is") as caught:
        open_view(argument)
    assert isinstance(caught.value, ConfigurationError)
    assert caught.value.code == "not_a_view"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("backend", "window"),
        ("port", -1),
        ("port", 65536),
        ("fps", 0),
        ("fps", 0.5),
        ("fps", float("nan")),
        ("fps", float("inf")),
        ("format", "gif"),
        ("quality", 0),
        ("quality", 101),
    ],
)
def test_a_value_out_of_range_is_a_value_error_that_names_it(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value!r}|{name} is {value}"):
        View(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("backend", None),
        ("port", "8008"),
        ("port", True),
        ("fps", "30"),
        ("source", 3),
        ("format", b"png"),
        ("quality", 75.5),
    ],
)
def test_a_value_of_the_wrong_type_is_a_type_error_that_names_it(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} is"):
        View(**{name: value})
