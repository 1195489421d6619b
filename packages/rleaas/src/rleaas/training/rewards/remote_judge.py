"""A verifier that the server judges by: it alone has the language model's key."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, cast

import httpx
from rlcore import Backoff, GraderError
from rlcore.environ import snapshot

from rleaas.verify.judge_prompt import finite
from rleaas.verify.trajectory import Trajectory
from rleaas.verify.verdict import GRADER_ERROR, Verdict, verdict_of
from rleaas.verify.work import Work

PATIENCE_SECONDS = 60.0
"""How long a server may be away before an episode goes without a verdict."""
ANSWER_SECONDS = 620.0
"""How long one judgement may take; the verifier's own limit ends before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteJudge:
    """Asks the worker's server; where it is and the token for it are in the environment."""

    path: str
    verifier: str
    version: int | None

    @property
    def looks_at_observations(self) -> bool:
        """A language model is told the whole episode."""
        return True

    def judge(self, trajectory: Trajectory, work: Work | None = None) -> Verdict:
        """Ask the server what the episode is worth.

        Raises:
            GraderError: it could not judge, or does not answer.
        """
        told = trajectory.to_json()
        said = self._asked({"verifier_id": self.verifier, **told})
        if said.get("outcome") == GRADER_ERROR:
            error = said["error"]
            raise GraderError(self.verifier, error["reason"], error["detail"])
        return verdict_of(said)

    def _asked(self, body: dict[str, Any]) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_SECONDS
        for delay in Backoff(first=0.2, cap=5.0).delays():
            try:
                return self._post(body)
            except (httpx.TransportError, httpx.HTTPStatusError, ValueError) as error:
                refused = isinstance(error, httpx.HTTPStatusError) and (
                    error.response.status_code < 500
                )
                if refused or time.monotonic() + delay > until:
                    detail = f"the server did not judge: {type(error).__name__}: {error}"
                    reason = "refused" if refused else "unreachable"
                    raise GraderError(self.verifier, reason, detail) from error
            time.sleep(delay)
        raise AssertionError("the delays never end")

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        variables = snapshot()
        response = httpx.post(
            variables["RLEAAS_BASE_URL"].rstrip("/") + self.path,
            json=finite(body),
            headers={"Authorization": f"Bearer {variables['RLEAAS_API_KEY']}"},
            timeout=ANSWER_SECONDS,
            trust_env=False,
        )
        response.raise_for_status()
        return cast("dict[str, Any]", response.json())
