"""How the server judges: which language model it asks, and where functions run."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rleaas.llm import DirectoryCache, ModelEndpoint, chat_of
from rleaas.server.function_process import FunctionProcess
from rleaas.verify import Definition, Judge, JudgeModel, Means, judge_of
from rleaas.verify.means import FunctionSource


class Judging:
    """Makes judges of verifiers, with what the operator has given for it.

    Args:
        endpoint: the language model of `llm_judge` verifiers; None: there is none.
        cache: the directory of its answers.
    """

    def __init__(self, endpoint: ModelEndpoint | None, cache: Path) -> None:
        self._model: JudgeModel | None = None if endpoint is None else chat_of(endpoint)
        self._cache = DirectoryCache(cache)

    @property
    def model(self) -> str | None:
        """Which model judges; None: there is none."""
        return None if self._model is None else self._model.identity

    @property
    def checking(self) -> Means:
        """Means that say whether a verifier could judge: a process starts when it is asked."""
        model = self._model
        return Means(model=None if model is None else lambda _: model, load=FunctionProcess)

    @contextmanager
    def judge(
        self, definition: Definition, find: Callable[[str], Definition], *, fresh: bool = False
    ) -> Generator[Judge]:
        """The judge of a verifier; Python functions in it run in processes that end with the block.

        `fresh` asks the model anew, whatever is kept of earlier answers.

        Raises:
            ConfigurationError: it is incomplete, or there is no language model for it.
        """
        with ExitStack() as processes:

            def load(source: FunctionSource) -> Judge:
                return processes.enter_context(FunctionProcess(source))

            model = self._model
            means = Means(
                model=None if model is None else lambda _: model,
                cache=None if fresh else self._cache,
                load=load,
            )
            yield judge_of(definition, find, means=means)
