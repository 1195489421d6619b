"""Verifiers without a server: expressions, trajectories, verdicts."""

from rleaas.verify.auditing import AuditReport, Finding, audit
from rleaas.verify.composite import Component, Composite
from rleaas.verify.definition import Definition, check, definition_of, judge_of
from rleaas.verify.episode import EpisodeRecorder
from rleaas.verify.expression import Expression
from rleaas.verify.function import FunctionVerifier, verifier
from rleaas.verify.functions import FUNCTIONS
from rleaas.verify.judge import Judge
from rleaas.verify.llm_judge import LlmJudge, Rubric
from rleaas.verify.means import Means
from rleaas.verify.model import AnswerCache, JudgeModel, Meter, ModelAnswer
from rleaas.verify.order import Order
from rleaas.verify.outcome import Ungraded, judged
from rleaas.verify.panel import Decision, WeightedVerifier, decide
from rleaas.verify.rates import Rate
from rleaas.verify.rule import Rule
from rleaas.verify.trajectory import Step, ToolCall, Trajectory
from rleaas.verify.verdict import Check, FailurePolicy, Verdict

__all__ = [
    "FUNCTIONS",
    "AnswerCache",
    "AuditReport",
    "Check",
    "Component",
    "Composite",
    "Decision",
    "Definition",
    "EpisodeRecorder",
    "Expression",
    "FailurePolicy",
    "Finding",
    "FunctionVerifier",
    "Judge",
    "JudgeModel",
    "LlmJudge",
    "Means",
    "Meter",
    "ModelAnswer",
    "Order",
    "Rate",
    "Rubric",
    "Rule",
    "Step",
    "ToolCall",
    "Trajectory",
    "Ungraded",
    "Verdict",
    "WeightedVerifier",
    "audit",
    "check",
    "decide",
    "definition_of",
    "judge_of",
    "judged",
    "verifier",
]
