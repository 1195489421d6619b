"""`llm_judge`: a language model grades the episode by a rubric."""

from __future__ import annotations

import hashlib
import json
import re
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

from rlcore import GraderError, ModelFailed

from rleaas.verify import logic as read
from rleaas.verify.judge_answer import BadAnswer, Grades, read_answer
from rleaas.verify.judge_prompt import LONGEST_EPISODE, evidence, messages_of, schema_of
from rleaas.verify.model import AnswerCache, JudgeModel, Message, Meter
from rleaas.verify.trajectory import Trajectory
from rleaas.verify.verdict import DEFAULT_POLICY, Check, FailurePolicy, Verdict
from rleaas.verify.work import Work

KEYS = (
    "judge_model",
    "evaluation_prompt",
    "scoring_rubric",
    "score_to_reward_mapping",
    "pass_threshold",
    "max_attempts",
    "timeout_seconds",
    "compliance_tags",
    "explanation_required",
)
_RUBRIC_KEYS = ("scale", "dimensions")
_SCALE = re.compile(r"\A\s*(-?\d+(?:\.\d+)?)\s*(?:-|to|\.\.)\s*(-?\d+(?:\.\d+)?)\s*\Z")
_OVERALL = "overall"
_MOST_DIMENSIONS = 20
_FORM = "rleaas.llm_judge/1"
"""The form of the question: another one has other answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """How a language model is to grade, and what its grades are worth.

    Attributes:
        prompt: what is good, in words.
        dimensions: what is graded, with what it means.
        low: the worst grade.
        high: the best one.
        rewards: the reward of a mean grade: points from the worst grade to the best, which never
            fall and lie from -1 to 1, and linear between two of them; empty: the score.
        pass_threshold: the score from 0 to 1 that passes.
        attempts: how often it is asked for an answer that can be read.
        seconds: how long all attempts may take.
        explains: whether an answer without an explanation is none.
        model: the model's name; None: the one that there is.
    """

    prompt: str
    dimensions: Mapping[str, str]
    low: float = 1.0
    high: float = 5.0
    rewards: tuple[tuple[float, float], ...] = ()
    pass_threshold: float = 0.75
    attempts: int = 3
    seconds: float = 60.0
    explains: bool = False
    model: str | None = None

    def score(self, grade: float) -> float:
        """The mean grade as a share of the scale."""
        return (grade - self.low) / (self.high - self.low)

    def reward(self, grade: float) -> float:
        """What the mean grade is worth."""
        if not self.rewards:
            return self.score(grade)
        place = bisect_left([point for point, _ in self.rewards], grade)
        if place == 0:
            return self.rewards[0][1]
        (left, below), (right, above) = self.rewards[place - 1], self.rewards[place]
        return below + (above - below) * (grade - left) / (right - left)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmJudge:
    """Judges by the grades that a language model gives.

    The score is the mean grade as a share of the scale. An answer that is no answer is asked for
    again, within the rubric's attempts and time; then there is no verdict (`GraderError`). The same
    model, rubric and episode have the same answer, where there is a cache.
    """

    rubric: Rubric
    model: JudgeModel
    cache: AnswerCache | None = None
    meter: Meter = field(default_factory=Meter)
    policy: FailurePolicy = DEFAULT_POLICY
    verifier: str = ""
    version: int | None = None

    @property
    def looks_at_observations(self) -> bool:
        """A model is told the whole episode."""
        return True

    def judge(self, trajectory: Trajectory, work: Work | None = None) -> Verdict:
        """Ask the model what the episode is worth.

        Raises:
            GraderError: it did not answer as it was asked, or the episode is too long for it.
        """
        rubric = self.rubric
        episode = evidence(trajectory)
        if len(episode) > LONGEST_EPISODE:
            raise self._failed(
                "too_large", f"the episode has {len(episode)} characters, over {LONGEST_EPISODE}"
            )
        messages = messages_of(
            episode,
            rubric=rubric.prompt,
            dimensions=rubric.dimensions,
            low=rubric.low,
            high=rubric.high,
        )
        spent = Meter()
        try:
            grades = self._grades(messages, spent)
        finally:
            self.meter.add(spent)
        grade = sum(grades.scores.values()) / len(grades.scores)
        score = rubric.score(grade)
        passed = score >= rubric.pass_threshold
        checks = tuple(
            Check(
                name,
                rubric.score(given) >= rubric.pass_threshold,
                f"{given:g} of {rubric.high:g}",
                score=rubric.score(given),
            )
            for name, given in grades.scores.items()
        )
        reward = rubric.reward(grade) + (0.0 if passed else self.policy.penalty)
        summary = f"mean grade {grade:.3g} from {rubric.low:g} to {rubric.high:g}"
        if grades.explanation:
            summary += f", as {self.model.identity} says: {grades.explanation}"
        return Verdict(
            score,
            passed,
            reward,
            checks,
            self.policy,
            summary,
            self.verifier,
            self.version,
            usage=spent.to_dict(),
        )

    def _grades(self, messages: Sequence[Message], spent: Meter) -> Grades:
        digest = self._digest(messages)
        kept = None if self.cache is None else self.cache.get(digest)
        if kept is not None:
            try:
                grades = self._read(kept)
            except BadAnswer:
                pass  # somebody changed the file: it is asked for again, and kept anew
            else:
                spent.cached += 1
                return grades
        text, grades = self._asked(messages, spent)
        if self.cache is not None:
            self.cache.put(digest, text)
        return grades

    def _asked(self, messages: Sequence[Message], spent: Meter) -> tuple[str, Grades]:
        until = time.monotonic() + self.rubric.seconds
        schema = schema_of(tuple(self.rubric.dimensions))
        said = list(messages)
        bad: BadAnswer | None = None
        for _ in range(self.rubric.attempts):
            left = until - time.monotonic()
            if left <= 0:
                break
            spent.calls += 1
            try:
                answer = self.model.complete(said, json_schema=schema, timeout=left)
                spent.count(answer)
                text = cast("object", answer.text)
            except GraderError:
                raise
            except ModelFailed as error:
                raise self._failed(
                    error.reason, error.detail, retryable=error.reason != "refused"
                ) from error
            except Exception as error:
                # The model is somebody's code: what it raises is no verdict, whatever it is.
                reason = "timeout" if isinstance(error, TimeoutError) else "exception"
                raise self._failed(reason, f"{type(error).__name__}: {error}"[:500]) from error
            if not isinstance(text, str):
                bad = BadAnswer("invalid_answer", f"it answered {type(text).__name__}, no text")
                continue
            try:
                return text, self._read(text)
            except BadAnswer as wrong:
                bad = wrong
            correction = f"That is no answer: {bad.detail[:300]}. Answer with the JSON object only."
            said = [
                *messages,
                {"role": "assistant", "content": text[:2_000] or "(nothing)"},
                {"role": "user", "content": correction},
            ]
        if bad is None:
            raise self._failed("timeout", f"nothing came within {self.rubric.seconds:g} s")
        raise self._failed(bad.reason, bad.detail) from bad

    def _read(self, text: str) -> Grades:
        rubric = self.rubric
        grades = read_answer(text, tuple(rubric.dimensions), rubric.low, rubric.high)
        if rubric.explains and not grades.explanation.strip():
            raise BadAnswer("invalid_answer", "its answer has no explanation")
        return grades

    def _digest(self, messages: Sequence[Message]) -> str:
        asked = [_FORM, self.model.identity, self.rubric.explains, *messages]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def _failed(self, reason: str, detail: str, *, retryable: bool = True) -> GraderError:
        return GraderError(
            self.verifier or "llm_judge",
            reason,
            detail,
            retryable=retryable,
            hint="The episode has no score; judge it again when the judge answers",
        )


def read_rubric(logic: Mapping[str, object], where: str) -> Rubric:
    """The rubric that a record describes.

    Raises:
        ConfigurationError: a part of it is wrong.
    """
    read.require_known(logic, KEYS, where)
    rubric = logic.get("scoring_rubric")
    if rubric is not None and not isinstance(rubric, Mapping):
        raise read.refused(where, "scoring_rubric is an object")
    given = cast("Mapping[str, object]", rubric or {})
    read.require_known(given, _RUBRIC_KEYS, f"{where}: scoring_rubric")
    low, high = _scale(given.get("scale", "1-5"), where)
    attempts = read.number(logic, "max_attempts", 3, where)
    if attempts not in range(1, 11):
        raise read.refused(where, f"max_attempts is a whole number from 1 to 10, not {attempts:g}")
    seconds = read.number(logic, "timeout_seconds", 60.0, where)
    if not 0 < seconds <= 600:
        raise read.refused(where, f"timeout_seconds is above 0 and at most 600, not {seconds:g}")
    read.texts(logic, "compliance_tags", where)
    return Rubric(
        prompt=_text(logic, "evaluation_prompt", where) or "",
        dimensions=_dimensions(given.get("dimensions"), where),
        low=low,
        high=high,
        rewards=_rewards(logic.get("score_to_reward_mapping"), low, high, where),
        pass_threshold=read.share(logic, "pass_threshold", 0.75, where),
        attempts=int(attempts),
        seconds=seconds,
        explains=logic.get("explanation_required") is True,
        model=_text(logic, "judge_model", where),
    )


def _text(logic: Mapping[str, object], key: str, where: str) -> str | None:
    value = logic.get(key)
    if value is not None and not isinstance(value, str):
        raise read.refused(where, f"{key} is text, not {value!r}")
    return value.strip() or None if value else None


def _scale(value: object, where: str) -> tuple[float, float]:
    found = _SCALE.match(value) if isinstance(value, str) and len(value) < 50 else None
    if found is None or not float(found[1]) < float(found[2]):
        raise read.refused(
            where, f"scale is two numbers, the worst and the best, not {value!r}", 'Write "1-5"'
        )
    return float(found[1]), float(found[2])


def _dimensions(value: object, where: str) -> Mapping[str, str]:
    if not value:
        return {_OVERALL: ""}
    pairs: Mapping[object, object] | None
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
    else:
        listed = read.sequence(value)
        pairs = None if listed is None else {one: "" for one in listed if isinstance(one, str)}
        if pairs is None or len(pairs) != len(listed or ()):
            raise read.refused(where, "dimensions is a list of different names, or an object")
    if len(pairs) > _MOST_DIMENSIONS:
        raise read.refused(where, f"it has more than {_MOST_DIMENSIONS} dimensions")
    made: dict[str, str] = {}
    for name, meaning in pairs.items():
        if not isinstance(name, str) or not name.isprintable() or '"' in name or not name.strip():
            raise read.refused(where, f"{name!r} cannot be the name of a dimension")
        if not isinstance(meaning, str):
            raise read.refused(where, f"dimension {name!r} is described by text")
        made[name] = meaning
    return made


def _rewards(value: object, low: float, high: float, where: str) -> tuple[tuple[float, float], ...]:
    if not value:
        return ()
    if not isinstance(value, Mapping):
        raise read.refused(where, "score_to_reward_mapping is an object from scores to rewards")
    mapping = cast("Mapping[str, object]", value)
    points: dict[float, float] = {}
    for key in mapping:
        try:
            point = float(key)
        except ValueError:
            raise read.refused(where, f"score_to_reward_mapping: {key!r} is no score") from None
        if not low <= point <= high:
            raise read.refused(
                where, f"score_to_reward_mapping: {key!r} is not from {low:g} to {high:g}"
            )
        if point in points:
            raise read.refused(where, f"score_to_reward_mapping: {point:g} is there twice")
        points[point] = read.number(mapping, key, 0.0, f"{where}: score_to_reward_mapping")
        if not abs(points[point]) <= 1:
            raise read.refused(
                where, f"score_to_reward_mapping: the reward of {key!r} is not from -1 to 1"
            )
    _require_rising(points, low, high, where)
    return tuple(sorted(points.items()))


def _require_rising(points: Mapping[float, float], low: float, high: float, where: str) -> None:
    """Refuse a map that says nothing of an end of the scale, or prefers a worse grade."""
    for end, word in ((low, "worst"), (high, "best")):
        if end not in points:
            raise read.refused(
                where,
                f"score_to_reward_mapping has no reward of {end:g}, the {word} grade",
                "Give both ends of the scale; between two grades the reward is linear",
            )
    grades = sorted(points)
    for worse, better in pairwise(grades):
        if points[worse] > points[better]:
            raise read.refused(
                where,
                f"score_to_reward_mapping: {worse:g} is worth more than {better:g}, a better grade",
            )
