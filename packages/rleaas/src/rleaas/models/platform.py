"""What the server says about itself."""

from __future__ import annotations

from rleaas.models.shape import Shape


class PlatformInfo(Shape):
    """The answer to `ping()`; older servers send only some of it."""

    status: str | None = None
    message: str | None = None
    version: str | None = None
