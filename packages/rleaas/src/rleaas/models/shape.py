"""What all shapes share: frozen, open to new fields, and readable like the dictionaries they were.

A field that the server sent as null counts as not sent, so a default means the same either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, ClassVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator

from rleaas.models import html


def _in_utc_if_naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


Moment = Annotated[datetime, AfterValidator(_in_utc_if_naive)]
"""An aware time; one that came without a zone is in UTC."""

Status = Annotated[str, BeforeValidator(_lower)]
"""A status word, always in lower case."""

JsonObject = dict[str, object]


class Shape(BaseModel):
    """A record from the server: attributes with types, and also `shape["field"]`.

    Fields this version does not know are kept and answer the same ways. `keys()`, `in` and `get`
    speak of what the server sent; `shape["field"]` also gives the default of a known field.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    other_names: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Field -> names under which other servers send it."""

    @model_validator(mode="before")
    @classmethod
    def _settle(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        given = dict(cast("Mapping[str, object]", value))
        for name, field in cls.model_fields.items():
            if given.get(name) is None and not field.is_required():
                given.pop(name, None)
        for name, others in cls.other_names.items():
            if given.get(name) is None:
                found = next((given[one] for one in others if given.get(one) is not None), None)
                if found is not None:
                    given[name] = found
        return given

    def __getitem__(self, name: str) -> object:
        if name in type(self).model_fields or name in (self.model_extra or {}):
            return cast("object", getattr(self, name))
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return name in self.model_fields_set

    def get(self, name: str, default: object = None) -> object:
        """Return the field as the server sent it, else `default`."""
        return self[name] if name in self.model_fields_set else default

    def keys(self) -> Iterator[str]:
        """Yield the names of the fields that the server sent."""
        known = (name for name in type(self).model_fields if name in self.model_fields_set)
        yield from known
        yield from self.model_extra or {}

    def values(self) -> Iterator[object]:
        """Yield the values of the fields that the server sent."""
        return (self[name] for name in self.keys())

    def items(self) -> Iterator[tuple[str, object]]:
        """Yield names and values of the fields that the server sent."""
        return ((name, self[name]) for name in self.keys())

    def _repr_html_(self) -> str:
        return html.record(type(self).__name__, self._told())

    def _told(self) -> dict[str, object]:
        """What may be shown: the server's fields without those that a `repr` leaves out."""
        hidden = {name for name, field in type(self).model_fields.items() if not field.repr}
        return {name: value for name, value in self.items() if name not in hidden}

    def to_dict(self) -> dict[str, object]:
        """Return the record as JSON-ready values."""
        return self.model_dump(mode="json")
