"""Several bundles as one."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import IO

from rlcore import BundleError, ConfigurationError

from rlmesh.recorder.files import Files, inside
from rlmesh.recorder.loading import load
from rlmesh.recorder.naming import safe_name
from rlmesh.recorder.records import EpisodeRecord, ResultSet, WorkloadRecord


def merge(*bundles: ResultSet | str | Path, result_set_id: str | None = None) -> ResultSet:
    """Return the workloads of several bundles, one after another; export it to write it down.

    Nothing is copied before that, so the bundles have to stay where they are.

    Args:
        bundles: loaded ones, or paths of folders and zip files, which are verified.
        result_set_id: the id of the whole; a new one by default.

    Raises:
        BundleError: a path is no bundle, or it is damaged.
        ConfigurationError: there is no bundle, or the same one twice.
    """
    if not bundles:
        raise ConfigurationError("there is nothing to merge")
    loaded = [one if isinstance(one, ResultSet) else load(one) for one in bundles]
    known = [one.result_set_id for one in loaded]
    if len(set(known)) < len(known):
        twice = next(one for one in known if known.count(one) > 1)
        raise ConfigurationError(
            f"the result set {twice!r} is there twice, so its episodes would count twice"
        )
    joined = _Joined(loaded)
    workloads: list[WorkloadRecord] = []
    for one in loaded:
        workloads += [
            joined.moved(workload, one.files, len(workloads) + at)
            for at, workload in enumerate(one.workloads)
        ]
    return ResultSet(
        result_set_id=uuid.uuid4().hex if result_set_id is None else result_set_id,
        workloads=workloads,
        verified=all(one.verified for one in loaded),
        files=joined,
    )


class _Joined:
    """The files of several bundles, under the names that they have in the joint one."""

    def __init__(self, parts: list[ResultSet]) -> None:
        self._parts = parts
        self._homes: dict[str, tuple[Files, str]] = {}

    def moved(self, workload: WorkloadRecord, files: Files | None, number: int) -> WorkloadRecord:
        def place(path: str) -> str:
            if files is None:
                raise BundleError(f"{path!r} is not at hand", path=path, hint="Load the bundle.")
            return self._place(path, files, number, workload.model)

        def episode(one: EpisodeRecord) -> EpisodeRecord:
            media = tuple(replace(m, path=place(m.path), files=self) for m in one.media)
            steps = one.trajectory
            if steps is not None:
                parquet = None if steps.parquet is None else place(steps.parquet)
                path = place(steps.path)
                steps = replace(steps, path=path, parquet=parquet, files=self)
            return replace(one, media=media, trajectory=steps)

        return replace(workload, episodes=[episode(one) for one in workload.episodes])

    def names(self) -> frozenset[str]:
        return frozenset(self._homes)

    def size(self, path: str) -> int:
        files, original = self._home(path)
        return files.size(original)

    def open(self, path: str) -> IO[bytes]:
        files, original = self._home(path)
        return files.open(original)

    def read(self, path: str, limit: int | None = None) -> bytes:
        files, original = self._home(path)
        return files.read(original, limit)

    def close(self) -> None:
        for part in self._parts:
            part.close()

    def _home(self, path: str) -> tuple[Files, str]:
        home = self._homes.get(inside(path))
        if home is None:
            raise BundleError(f"the bundle has no file {path!r}", path=path)
        return home

    def _place(self, path: str, files: Files, number: int, model: str) -> str:
        kind, _, rest = inside(path).partition("/")
        workload, _, within = rest.partition("/")
        if not rest:  # a file of another recorder, beside the documents
            kind, within = "media", kind
        home = f"{kind}/w{number:03d}-{safe_name(model)}"
        moved = f"{home}/{within or workload}"
        if self._homes.get(moved, (files, path)) != (files, path):  # two folders become one
            moved = f"{home}/{workload}/{within}"
        at = 2
        while self._homes.get(moved, (files, path)) != (files, path):
            moved = f"{home}/{at}/{within or workload}"
            at += 1
        self._homes[moved] = (files, path)
        return moved
