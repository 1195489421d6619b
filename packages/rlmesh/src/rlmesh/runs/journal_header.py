"""Which run a journal belongs to, and in what another run differs from it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

from rlcore import ConfigurationError, EnvironmentIdentity

from rlmesh.backends.content import Content
from rlmesh.runs.provenance import Plain
from rlmesh.specs import UNKNOWN_ID

_UNTOLD = "the journal cannot tell whether {} is the same one"


@dataclass(frozen=True, slots=True)
class Header:
    """The run that a journal belongs to.

    `seeds` are those of its episodes, in order. `settings` are the arguments that shape what an
    episode is, as plain values: limits, horizon, the names of criteria. The versions of packages
    are kept, and may change from one sitting to the next: upgrades happen. `contents` are what the
    model, the environment and the criteria are made of, where that is known; what one sitting
    does not know is not compared, which `gaps` tells.
    """

    model: str
    model_digest: str | None
    environment: EnvironmentIdentity | None
    seeds: tuple[int | None, ...]
    settings: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    package_versions: Mapping[str, str] = field(default_factory=dict[str, str])
    contents: Mapping[str, Content] = field(default_factory=dict[str, Content], compare=False)

    def to_dict(self) -> dict[str, object]:
        """Return the header as plain JSON values."""
        return {
            "model": self.model,
            "model_digest": self.model_digest,
            "environment": None if self.environment is None else self.environment.to_dict(),
            "seeds": list(self.seeds),
            "settings": dict(self.settings),
            "package_versions": dict(self.package_versions),
            "contents": {name: content.digest for name, content in self.contents.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Return the header that `to_dict` wrote.

        Raises:
            ConfigurationError: it is none.
        """
        try:
            values = cast("Mapping[str, Any]", data)  # Any: JSON, checked by what is built from it
            environment = values["environment"]
            return cls(
                model=values["model"],
                model_digest=values["model_digest"],
                environment=None if environment is None else EnvironmentIdentity(**environment),
                seeds=tuple(values["seeds"]),
                settings=dict(values["settings"]),
                package_versions=dict(values["package_versions"]),
                contents={
                    str(name): Content(str(digest))
                    for name, digest in dict(values.get("contents", {})).items()
                },
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"not the header of a journal: {error!r}") from error

    def differences(self, other: "Header") -> dict[str, str]:
        """Return what differs in another run: a sentence for each dotted path."""
        return {
            path: f"{path} is {theirs!r} there and {ours!r} here"
            for path, ours, theirs in self._facts(other)
            if ours != theirs
        }

    def upgrades(self, other: "Header") -> tuple[str, ...]:
        """Return a sentence for each package whose version is another one in `other`."""
        ours, theirs = self.package_versions, other.package_versions
        return tuple(
            f"{name} was {theirs[name]} when the journal was begun, and is {ours[name]}"
            for name in sorted(set(ours) & set(theirs))
            if ours[name] != theirs[name]
        )

    def gaps(self, other: "Header") -> tuple[str, ...]:
        """Return a sentence for each thing that may be another one than in `other`."""
        both = set(self.contents) & set(other.contents)
        registered = self.environment is not None and self.environment.version is not None
        told: list[str] = []
        if "model" not in both and self.model_digest is None:
            told.append(f"{_UNTOLD.format('the model')}, but by its name: give it a digest=")
        if not registered and not any(name.startswith("environment.") for name in both):
            told.append(f"{_UNTOLD.format('the environment')}, but by its contract")
        # What made an environment says more than its class does.
        made = "environment.made_by" in both
        told += [
            f"the journal cannot tell whether these parts of the {name.partition('.')[0]} are the "
            f"same: {self.contents[name].gaps}"
            for name in sorted(both)
            if self.contents[name].unseen and not (made and name == "environment.class")
        ]
        return tuple(told)

    def _facts(self, other: "Header") -> Iterator[tuple[str, object, object]]:
        yield "model", self.model, other.model
        yield "model_digest", self.model_digest, other.model_digest
        mine, its = self.environment, other.environment
        if mine is None or its is None:
            yield "environment", mine, its
        else:
            if UNKNOWN_ID not in (mine.name, its.name):  # not every sitting knows its class
                yield "environment.name", mine.name, its.name
            yield "environment.version", mine.version, its.version
            yield "environment.contract_digest", mine.contract_digest, its.contract_digest
        yield from self._seeds(other)
        for name in sorted({*self.settings, *other.settings}):
            yield f"settings.{name}", self.settings.get(name), other.settings.get(name)
        for name in sorted(set(self.contents) & set(other.contents)):
            yield f"contents.{name}", self.contents[name].digest, other.contents[name].digest

    def _seeds(self, other: "Header") -> Iterator[tuple[str, object, object]]:
        yield "len(seeds)", len(self.seeds), len(other.seeds)
        # The first place says enough; the rest usually follows from it.
        for index, (ours, theirs) in enumerate(zip(self.seeds, other.seeds, strict=False)):
            if ours != theirs:
                yield f"seeds[{index}]", ours, theirs
                return
