"""From a `view=` argument to a viewer."""

from __future__ import annotations

from rlmesh.viewer.view import view_of
from rlmesh.viewer.viewer import Viewer


def open_viewer(view: object, *, episodes: int | None = None) -> Viewer:
    """Return the viewer that a `view=` argument asks for; see `rlmesh.runs.views.open_view`."""
    return Viewer(view_of(view), episodes=episodes)
