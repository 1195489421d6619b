"""Things that the control plane does not have.

NotFoundError(LookupError)
├ EnvironmentNotFound  TrainingJobNotFound  VerifierNotFound  CheckpointNotFound  EvaluationNotFound
└ AgentNotFound  ScenarioNotFound  SuiteNotFound  ToolNotFound: also KeyError
"""

from __future__ import annotations

from typing import Unpack

from rlcore.platform_errors import ReplyFacts, StatusError


class NotFoundError(StatusError, LookupError):
    """The thing named does not exist.

    Attributes:
        kind: what it would be, such as `environment`.
        ref: the name or id that was asked for.
    """

    default_code = "not_found"
    default_status = 404

    def __init__(
        self, message: str = "", *, kind: str = "", ref: str = "", **facts: Unpack[ReplyFacts]
    ) -> None:
        super().__init__(message, **facts)
        self.kind = kind
        self.ref = ref


class EnvironmentNotFound(NotFoundError):
    """No environment has this name or id."""

    default_code = "environment_not_found"

    def __init__(self, ref: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(f"Environment not found: {ref!r}", kind="environment", ref=ref, **facts)


class TrainingJobNotFound(NotFoundError):
    """No training job has this id."""

    default_code = "training_job_not_found"

    def __init__(self, job_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(
            f"Training job not found: {job_id!r}", kind="training_job", ref=job_id, **facts
        )
        self.job_id = job_id


class VerifierNotFound(NotFoundError):
    """No verifier has this id."""

    default_code = "verifier_not_found"

    def __init__(self, verifier_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(
            f"Verifier not found: {verifier_id!r}", kind="verifier", ref=verifier_id, **facts
        )
        self.verifier_id = verifier_id


class CheckpointNotFound(NotFoundError):
    """No checkpoint has this id."""

    default_code = "checkpoint_not_found"

    def __init__(self, checkpoint_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(
            f"Checkpoint not found: {checkpoint_id!r}",
            kind="checkpoint",
            ref=checkpoint_id,
            **facts,
        )
        self.checkpoint_id = checkpoint_id


class EvaluationNotFound(NotFoundError):
    """No evaluation has this id."""

    default_code = "evaluation_not_found"

    def __init__(self, evaluation_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(
            f"Evaluation not found: {evaluation_id!r}",
            kind="evaluation",
            ref=evaluation_id,
            **facts,
        )
        self.evaluation_id = evaluation_id


class AgentNotFound(NotFoundError, KeyError):
    """No agent has this id."""

    default_code = "agent_not_found"

    def __init__(self, agent_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(f"Agent not found: {agent_id!r}", kind="agent", ref=agent_id, **facts)
        self.agent_id = agent_id


class ScenarioNotFound(NotFoundError, KeyError):
    """No scenario has this id, here or in the library."""

    default_code = "scenario_not_found"

    def __init__(self, scenario_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(
            f"Scenario not found: {scenario_id!r}", kind="scenario", ref=scenario_id, **facts
        )
        self.scenario_id = scenario_id


class SuiteNotFound(NotFoundError, KeyError):
    """No scenario suite has this id."""

    default_code = "suite_not_found"

    def __init__(self, suite_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(f"Suite not found: {suite_id!r}", kind="suite", ref=suite_id, **facts)
        self.suite_id = suite_id


class ToolNotFound(NotFoundError, KeyError):
    """No tool has this id or name."""

    default_code = "tool_not_found"

    def __init__(self, tool_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(f"Tool not found: {tool_id!r}", kind="tool", ref=tool_id, **facts)
        self.tool_id = tool_id
