"""A policy as an ONNX file that was run and compared before anybody gets it."""

# onnxruntime and torch.onnx leave much of their types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]  # it has no stubs
import torch
from gymnasium import spaces
from rlcore import ServerFailure

from rleaas.training.exports.inputs import NetworkInputs
from rleaas.training.loaded_policy import LoadedPolicy

OBSERVATIONS: Final = 64
_SEED: Final = 0
# Between torch's kernels and those of onnxruntime; actions that are counted must be equal.
_RELATIVE: Final = 1e-4
_ABSOLUTE: Final = 1e-5


def write_onnx(
    policy: LoadedPolicy, target: Path, facts: Mapping[str, object] | None
) -> dict[str, object]:
    """Write the file and return what the comparison found.

    Raises:
        UnsupportedRequestError: the policy is no network of tensors.
        ServerFailure: the file does not act like the policy; it must not be given out.
    """
    network, example = policy.network()
    inputs = NetworkInputs(policy.manifest, example)
    with warnings.catch_warnings(), open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a device
        # The exporter tells its progress, and warns of what it finds in torch itself.
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere):
            program = torch.onnx.export(
                network.eval(),
                # Two of each: a batch of one would be taken for the only size.
                tuple(torch.cat([one, one]) for one in example.values()),
                dynamo=True,
                input_names=list(example),
                output_names=["action"],
                dynamic_shapes=_batched(network, example),
            )
    model = cast("Any", program).model_proto
    metadata = {"preprocessing": inputs.described(), "facts": dict(facts or {})}
    onnx.helper.set_model_props(
        model, {name: json.dumps(one, ensure_ascii=False) for name, one in metadata.items()}
    )
    onnx.checker.check_model(model)
    onnx.save_model(model, str(target))
    return _compared(policy, inputs, target)


def _batched(network: torch.nn.Module, example: Mapping[str, torch.Tensor]) -> Any:
    """Every input's first dimension is a batch of any size, whatever the arguments are called."""
    import inspect

    batch = torch.export.Dim("batch")
    each = tuple({0: batch} for _ in example)
    parameters = inspect.signature(network.forward).parameters.values()
    takes_all = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters)
    return (each,) if takes_all else each


def _compared(policy: LoadedPolicy, inputs: NetworkInputs, target: Path) -> dict[str, object]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(target), options, providers=["CPUExecutionProvider"])
    inputs.observations.seed(_SEED)
    seen = [inputs.observations.sample() for _ in range(OBSERVATIONS)]
    encoded = [inputs.encoded(one) for one in seen]
    wanted = [np.asarray(policy.predict(one)) for one in seen]
    together = {name: np.concatenate([one[name] for one in encoded]) for name in encoded[0]}
    rows = cast("np.ndarray[Any, Any]", session.run(None, together)[0])
    alone = cast("np.ndarray[Any, Any]", session.run(None, encoded[0])[0])
    given = [np.asarray(inputs.decoded(row)) for row in [*rows, alone[0]]]
    is_box = isinstance(inputs.actions, spaces.Box)
    same, largest = 0, 0.0
    for one, other in zip(given, [*wanted, wanted[0]], strict=True):
        gap = float(np.max(np.abs(one.astype(np.float64) - other.astype(np.float64)), initial=0))
        largest = max(largest, gap)
        close = np.allclose(one, other, rtol=_RELATIVE, atol=_ABSOLUTE)
        same += bool(close if is_box else np.array_equal(one, other))
    if same != len(given):
        raise ServerFailure(
            f"the ONNX file of checkpoint of job {policy.manifest.job_id!r} acts differently for "
            f"{len(given) - same} of {len(given)} observations, by up to {largest:g}; it is not "
            "given out",
            code="export_differs",
            retryable=False,
            hint="Export another format, and report this",
        )
    return {
        "checked_with": f"onnxruntime {onnxruntime.__version__}",
        "observations": OBSERVATIONS,
        "same_actions": OBSERVATIONS,
        "largest_difference": largest,
    }
