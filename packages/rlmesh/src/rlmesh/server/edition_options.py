"""The options of a server with the workflow edition that counts, wherever it was declared."""

from __future__ import annotations

from dataclasses import replace

from rlmesh.server.options import ServeOptions
from rlmesh.workflow import chosen_edition


def with_edition(options: ServeOptions, keyword: str | None, declared: str | None) -> ServeOptions:
    """Return the options with the edition of the keyword, the options, or what is served."""
    edition = chosen_edition(keyword=keyword, option=options.workflow_edition, declared=declared)
    return replace(options, workflow_edition=edition)
