"""A verifier that the server judges by: it alone has the language model's key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlcore import GraderError

from rleaas.training.ask_server import NotAnswered, ask_server
from rleaas.verify.judge_prompt import finite
from rleaas.verify.trajectory import Trajectory
from rleaas.verify.verdict import GRADER_ERROR, Verdict, verdict_of
from rleaas.verify.work import Work

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
        try:
            return ask_server(self.path, finite(body), seconds=ANSWER_SECONDS)
        except NotAnswered as error:
            detail = f"the server did not judge: {error.detail}"
            raise GraderError(self.verifier, error.reason, detail) from error
