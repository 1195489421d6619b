"""What some verifiers need beside their definition: a language model, or a function's code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from rlcore import ConfigurationError

from rleaas.verify.judge import Judge
from rleaas.verify.model import AnswerCache, JudgeModel, Meter
from rleaas.verify.verdict import FailurePolicy

FindModel = Callable[[str | None], JudgeModel]
"""The model with this name; None asks for the one that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSource:
    """A verifier's Python source, and the function in it that judges."""

    source: str
    function: str
    threshold: float
    policy: FailurePolicy
    verifier: str
    version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What verifiers may use here.

    Attributes:
        model: the language model of judges, or a function that gives the one of a name (None: of
            no name); None: there is none.
        cache: keeps its answers.
        load: makes a judge of a Python function's source; None: no code is run here.
        remote: makes a judge that asks another process, which has the language model, of a
            verifier's id and version.
        meter: counts what models cost.
    """

    model: JudgeModel | FindModel | None = None
    cache: AnswerCache | None = None
    load: Callable[[FunctionSource], Judge] | None = None
    remote: Callable[[str, int | None], Judge] | None = None
    meter: Meter = field(default_factory=Meter)

    def __post_init__(self) -> None:
        if self.model is not None and not (_answers(self.model) or callable(self.model)):
            raise _no_model(self.model)

    @property
    def model_identity(self) -> str | None:
        """Which model judges that nobody names; None: there is none."""
        return None if self.model is None else self._named(None).identity

    def judge_model(self, name: str | None, where: str) -> JudgeModel:
        """The language model of a judge.

        Raises:
            ConfigurationError: there is none (`no_judge_configured`), or what is there cannot
                answer (`invalid_judge_model`).
        """
        if self.model is None:
            raise no_judge_configured(where)
        return self._named(name)

    def _named(self, name: str | None) -> JudgeModel:
        found: object = self.model
        if not _answers(found):
            found = cast("FindModel", found)(name)
        if not _answers(found):
            raise _no_model(found)
        return cast("JudgeModel", found)


def _answers(model: object) -> bool:
    return callable(getattr(model, "complete", None)) and not isinstance(model, type)


def _no_model(given: object) -> ConfigurationError:
    return ConfigurationError(
        f"{type(given).__name__} is no language model: it has no complete(messages, ...)",
        code="invalid_judge_model",
        hint="Means(model=...) takes a verify.JudgeModel, such as rleaas.llm.OpenAIChat(...), or a "
        "function of a name that gives one",
    )


NO_MEANS = Means()


def no_judge_configured(where: str) -> ConfigurationError:
    """The refusal to grade without a model; a score would be invented."""
    return ConfigurationError(
        f"{where}: no judge configured: no language model is there to ask",
        code="no_judge_configured",
        hint="Start the server with --judge-url and --judge-model, the key in RLEAAS_JUDGE_KEY; "
        "in Python, give judge_of(..., means=Means(model=OpenAIChat(...)))",
    )
