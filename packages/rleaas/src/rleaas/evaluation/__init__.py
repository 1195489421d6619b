from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rleaas.models.rollout import ReportFormat as ExportFormat
    from rleaas.resources.evaluation_handle import EvaluationJobResource
    from rleaas.resources.evaluations import EvaluationClient

__all__ = ["EvaluationClient", "EvaluationJobResource", "ExportFormat"]

_HOMES = {
    "EvaluationClient": ("rleaas.resources.evaluations", "EvaluationClient"),
    "EvaluationJobResource": ("rleaas.resources.evaluation_handle", "EvaluationJobResource"),
    "ExportFormat": ("rleaas.models.rollout", "ReportFormat"),
}


if not TYPE_CHECKING:  # a checker would take every name for one that is there

    def __getattr__(name: str) -> object:
        # What clients use is above this room, and is imported when somebody asks for it here.
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home, own_name = _HOMES[name]
        return getattr(import_module(home), own_name)
