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

Criterion = Callable[[EpisodeResult], bool] | str
"""What decides success: a function of the episode, or a key of the last info."""

TaskName = Callable[[EpisodeResult], str] | str
"""What an episode's task is: a function of the episode, or a key of the last info."""


@dataclass(frozen=True, slots=True)
class Grader:
    """Grades ended episodes, by a criterion where there is one, otherwise by the last info."""

    criterion: Criterion | None = None
    task: TaskName | None = None

    def grade(self, episode: EpisodeResult, info: Mapping[str, object]) -> EpisodeResult:
        """Return the episode with its success and its task.

        What raises while it judges costs the episode its score.
        """
        try:
            return replace(
                episode, success=self._judge(episode, info), task=self._task(episode, info)
            )
        except Exception as error:
            text = f"judging success raised {type(error).__name__}: {error}"
            return replace(episode, outcome=Outcome.GRADER_ERROR, error=text)

    def _judge(self, episode: EpisodeResult, info: Mapping[str, object]) -> bool | None:
        if self.criterion is None:
            return reported_success(info)
        if isinstance(self.criterion, str):
            value = info.get(self.criterion)
            return None if value is None else bool(value)
        return bool(self.criterion(episode))

    def _task(self, episode: EpisodeResult, info: Mapping[str, object]) -> str | None:
        if self.task is None:
            return episode.task
        if isinstance(self.task, str):
            value = info.get(self.task)
            return None if value is None else str(value)
        return str(self.task(episode))


def grader(
    *,
    success: Criterion | None,
    success_threshold: SupportsFloat | None,
    task: TaskName | None = None,
) -> Grader:
    """Return the grader for a criterion, or for the reward that an episode has to reach.

    Raises:
        ConfigurationError: both are given, or one is not what it should be.
    """
    if not isinstance(success, str):
        function(success, "success")
    if not isinstance(task, str):
        function(task, "task")
    if success_threshold is None:
        return Grader(success, task)
    if success is not None:
        raise ConfigurationError("both success and success_threshold are given", hint="give one")
    threshold = number(success_threshold, "success_threshold")

    def reached(episode: EpisodeResult) -> bool:
        return episode.reward is not None and episode.reward >= threshold

    return Grader(reached, task)


def reported_success(info: Mapping[str, object]) -> bool | None:
    """Return what the last info says about success, or None where it says nothing."""
    for key in SUCCESS_KEYS:
        if (value := info.get(key)) is not None:
            return bool(value)
    return None
