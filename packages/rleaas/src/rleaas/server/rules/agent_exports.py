"""In which forms a checkpoint can be given out; pure."""

from collections.abc import Mapping
from typing import Final, Literal

from rlcore import UnsupportedRequestError

ExportFormat = Literal["huggingface", "safetensors", "pytorch", "onnx", "openai_compatible"]

ENDINGS: Final[Mapping[str, str]] = {
    "huggingface": "zip",
    "safetensors": "safetensors",
    "pytorch": "pt",
    "onnx": "onnx",
}
MEDIA_TYPES: Final[Mapping[str, str]] = {"huggingface": "application/zip"}
OTHER_MEDIA: Final = "application/octet-stream"


def require_available(form: str) -> None:
    """Refuse a form that no checkpoint can have.

    Raises:
        UnsupportedRequestError: it is one.
    """
    if form not in ENDINGS:
        raise UnsupportedRequestError(
            f"this server cannot export {form}: it is an address and not a file",
            code="export_format_unavailable",
            hint="Export a language model as 'huggingface'; servers with that interface load it",
        )
