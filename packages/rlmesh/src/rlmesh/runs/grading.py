"""Whether an episode succeeded: what the task says, or the run's own criterion."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import SupportsFloat

from rlcore import ConfigurationError

from rlmesh.runs.arguments import function, number
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult

SUCCESS_KEYS = ("is_success", "success", "task_success")
"""Where tasks report success in their last info; the first one present counts."""

Criterion = Callable[[EpisodeResult], bool]


@dataclass(frozen=True, slots=True)
class Grader:
    """Grades ended episodes, by a criterion where there is one, otherwise by the last info."""

    criterion: Criterion | None = None

    def grade(self, episode: EpisodeResult, info: Mapping[str, object]) -> EpisodeResult:
        """Return the episode with its success; a criterion that raises costs it its score."""
        try:
            success = self._judge(episode, info)
        except Exception as error:
            text = f"judging success raised {type(error).__name__}: {error}"
            return replace(episode, outcome=Outcome.GRADER_ERROR, error=text)
        return replace(episode, success=success)

    def _judge(self, episode: EpisodeResult, info: Mapping[str, object]) -> bool | None:
        if self.criterion is None:
            return reported_success(info)
        return bool(self.criterion(episode))


def grader(*, success: Criterion | None, success_threshold: SupportsFloat | None) -> Grader:
    """Return the grader for a criterion, or for the reward that an episode has to reach.

    Raises:
        ConfigurationError: both are given, or one is not what it should be.
    """
    function(success, "success")
    if success_threshold is None:
        return Grader(success)
    if success is not None:
        raise ConfigurationError("both success and success_threshold are given", hint="give one")
    threshold = number(success_threshold, "success_threshold")
    return Grader(lambda episode: episode.reward is not None and episode.reward >= threshold)


def reported_success(info: Mapping[str, object]) -> bool | None:
    """Return what the last info says about success, or None where it says nothing."""
    for key in SUCCESS_KEYS:
        if (value := info.get(key)) is not None:
            return bool(value)
    return None
