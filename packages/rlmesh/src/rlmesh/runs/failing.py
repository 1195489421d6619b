"""How a local environment fails: in the words in which a served one does."""

import traceback
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from rlcore import EnvironmentException, RLMeshException

from rlmesh.specs import UNKNOWN_ID, EnvContract


class Failing:
    """What local environments of one lane and of many have in common.

    Attributes:
        env: the environment itself.
        env_contract: its contract, where its spaces can be described.
    """

    def __init__(self, env: Any) -> None:  # Any: whatever has reset and step
        self.env = env
        self.env_contract: EnvContract | None = None
        self._seed: object = None
        self._steps = 0

    @property
    def metadata(self) -> Mapping[str, object]:
        """The environment's own metadata."""
        found: object = getattr(self.env, "metadata", None)
        return cast("Mapping[str, object]", found) if isinstance(found, Mapping) else {}

    @property
    def name(self) -> str:
        """What errors call the environment: its id, or its class where it has none."""
        contract = self.env_contract
        if contract is None or contract.id == UNKNOWN_ID:
            return type(self.env).__name__
        return contract.id

    def close(self) -> None:
        """Close the environment, where it can be closed.

        Raises:
            EnvironmentException: the environment raised.
        """
        close = getattr(self.env, "close", None)
        if callable(close):
            try:
                close()
            except (Exception, SystemExit) as error:
                self._failed("close", error)

    def _failed(self, operation: str, error: Exception | SystemExit) -> NoReturn:
        # A local wrapper around a remote environment: its errors are typed already.
        if isinstance(error, RLMeshException):
            raise error
        raise self._exception(
            operation,
            f"raised {type(error).__name__}: {error}",
            remote_type=type(error).__name__,
            remote_traceback="".join(traceback.format_exception(error)),
        ) from error

    def _malformed(self, operation: str, error: Exception) -> NoReturn:
        raise self._exception(
            operation,
            f"gave a wrong answer: {error}",
            remote_type=type(error).__name__,
        ) from error

    def _exception(self, operation: str, what: str, **facts: Any) -> EnvironmentException:
        seed = self._seed if isinstance(self._seed, int) else None
        where = f"seed {self._seed}" + (f", step {self._steps}" if operation == "step" else "")
        return EnvironmentException(
            f"{operation} of {self.name!r} ({where}) {what}",
            operation=operation,
            environment=self.name,
            seed=seed,
            step=self._steps if operation == "step" else None,
            **facts,
        )
