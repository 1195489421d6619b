"""Recordings of runs: bundles, trajectories, videos, reports and replay."""

from rlmesh.recorder.loading import load
from rlmesh.recorder.merging import merge
from rlmesh.recorder.recorder import Recorder
from rlmesh.recorder.records import (
    SCHEMA,
    EpisodeRecord,
    MediaRef,
    ResultSet,
    TrajectoryRef,
    WorkloadRecord,
)
from rlmesh.recorder.replaying import Difference, Replayed, ReplayReport, replay
from rlmesh.recorder.report import html_report, write_report
from rlmesh.recorder.sinks import BundleInTheWay
from rlmesh.recorder.trajectory import Trajectory

__all__ = [
    "SCHEMA",
    "BundleInTheWay",
    "Difference",
    "EpisodeRecord",
    "MediaRef",
    "Recorder",
    "ReplayReport",
    "Replayed",
    "ResultSet",
    "Trajectory",
    "TrajectoryRef",
    "WorkloadRecord",
    "html_report",
    "load",
    "merge",
    "replay",
    "write_report",
]
