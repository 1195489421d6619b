"""Episodes step by step: recorded, kept as Parquet, read again, and judged."""

from rleaas.evaluation.rollouts.judged import trajectory_of
from rleaas.evaluation.rollouts.reader import RolloutReader, check_rollouts
from rleaas.evaluation.rollouts.record import (
    EVENT_TYPES,
    EventType,
    RolloutRecord,
    StepRecord,
    TimelineEvent,
)
from rleaas.evaluation.rollouts.recorder import EpisodeName, RolloutRecorder
from rleaas.evaluation.rollouts.writer import RolloutWriter

__all__ = [
    "EVENT_TYPES",
    "EpisodeName",
    "EventType",
    "RolloutReader",
    "RolloutRecord",
    "RolloutRecorder",
    "RolloutWriter",
    "StepRecord",
    "TimelineEvent",
    "check_rollouts",
    "trajectory_of",
]
