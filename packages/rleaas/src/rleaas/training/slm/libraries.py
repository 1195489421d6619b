"""transformers, imported without a network: nothing is fetched, nothing is reported."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from importlib import import_module
from typing import Any

from rlcore.environ import defaulted

_SWITCHES = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    # Found installed, these would be imported, for seconds, and then written to.
    "DISABLE_MLFLOW_INTEGRATION": "TRUE",
    "TRL_EXPERIMENTAL_SILENCE": "1",
}


@contextlib.contextmanager
def offline() -> Generator[None]:
    """Set what these libraries read while they are imported and set up."""
    with contextlib.ExitStack() as stack:
        for name, value in _SWITCHES.items():
            stack.enter_context(defaulted(name, value))
        yield


with offline():
    _library: Any = import_module("transformers")
    # The library exports them lazily: each is imported here, when it is named.
    AutoModelForCausalLM = _library.AutoModelForCausalLM
    AutoTokenizer = _library.AutoTokenizer
    GenerationConfig = _library.GenerationConfig
    PhiConfig = _library.PhiConfig
    PhiForCausalLM = _library.PhiForCausalLM
    PreTrainedTokenizerFast = _library.PreTrainedTokenizerFast

_library.utils.logging.disable_progress_bar()
