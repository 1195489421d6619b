"""What the handles share: a record of the platform, and methods that ask the platform about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from rleaas._binding import D, Resource
from rleaas.models import Shape, html

S = TypeVar("S", bound=Shape)


class Handle(Resource[D], Generic[D, S]):
    """One thing on the platform; `record` is what was last heard of it.

    A handle also answers `handle["field"]`, `handle.get("field")` and `"field" in handle`, from its
    record.
    """

    def __init__(self, driver: D, record: S) -> None:
        super().__init__(driver)
        self._record = record

    @property
    def record(self) -> S:
        """What the platform last said about it."""
        return self._record

    def to_dict(self) -> dict[str, object]:
        """Return the record as JSON-ready values."""
        return self._record.to_dict()

    def get(self, name: str, default: object = None) -> object:
        """Return a field of the record as the platform sent it, else `default`."""
        return self._record.get(name, default)

    def _repr_html_(self) -> str:
        return html.record(type(self).__name__, self._told())

    def _told(self) -> dict[str, object]:
        return self._record._told()  # pyright: ignore[reportPrivateUsage]  # ours

    def keys(self) -> Iterator[str]:
        """Yield the names of the record's fields."""
        return self._record.keys()

    def __getitem__(self, name: str) -> object:
        return self._record[name]

    def __contains__(self, name: object) -> bool:
        return name in self._record
