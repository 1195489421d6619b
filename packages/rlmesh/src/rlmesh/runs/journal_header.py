"""Which run a journal belongs to, and in what another run differs from it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

from rlcore import ConfigurationError, EnvironmentIdentity

from rlmesh.runs.provenance import Plain


@dataclass(frozen=True, slots=True)
class Header:
    """The run that a journal belongs to.

    `seeds` are those of its episodes, in order. `settings` are the arguments that shape what an
    episode is, as plain values: limits, horizon, the names of criteria. The versions of packages
    are kept, and may change from one sitting to the next: upgrades happen.
    """

    model: str
    model_digest: str | None
    environment: EnvironmentIdentity | None
    seeds: tuple[int | None, ...]
    settings: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    package_versions: Mapping[str, str] = field(default_factory=dict[str, str])

    def to_dict(self) -> dict[str, object]:
        """Return the header as plain JSON values."""
        return {
            "model": self.model,
            "model_digest": self.model_digest,
            "environment": None if self.environment is None else self.environment.to_dict(),
            "seeds": list(self.seeds),
            "settings": dict(self.settings),
            "package_versions": dict(self.package_versions),
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

    def _facts(self, other: "Header") -> Iterator[tuple[str, object, object]]:
        yield "model", self.model, other.model
        yield "model_digest", self.model_digest, other.model_digest
        mine, its = self.environment, other.environment
        if mine is None or its is None:
            yield "environment", mine, its
        else:
            yield "environment.name", mine.name, its.name
            yield "environment.version", mine.version, its.version
            yield "environment.contract_digest", mine.contract_digest, its.contract_digest
        yield from self._seeds(other)
        for name in sorted({*self.settings, *other.settings}):
            yield f"settings.{name}", self.settings.get(name), other.settings.get(name)

    def _seeds(self, other: "Header") -> Iterator[tuple[str, object, object]]:
        yield "len(seeds)", len(self.seeds), len(other.seeds)
        # The first place says enough; the rest usually follows from it.
        for index, (ours, theirs) in enumerate(zip(self.seeds, other.seeds, strict=False)):
            if ours != theirs:
                yield f"seeds[{index}]", ours, theirs
                return
