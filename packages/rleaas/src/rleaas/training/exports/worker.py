"""`python -m rleaas.training.exports.worker ORDER REPLY`: makes one export of a checkpoint.

In a process of its own: what it imports takes seconds and hundreds of megabytes.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from rlcore import Error, MissingDependencyError

from rleaas.training.checkpoint_file import WEIGHTS, read_member, read_weights
from rleaas.training.exports.huggingface import has_weights, write_huggingface
from rleaas.training.exports.order import ExportOrder
from rleaas.training.loaded_policy import open_policy


def export(order: ExportOrder) -> dict[str, object]:
    """Write the file, and return what was checked of it.

    Raises:
        ConfigurationError: the file is not a checkpoint of this product.
        MissingDependencyError: an extra that the form needs is not installed.
        UnsupportedRequestError: the policy has no such form.
        ServerFailure: what was made does not act like the policy.
    """
    torch.set_num_threads(1)
    # Also where only the tensors are given out: what cannot be opened is no checkpoint.
    policy = open_policy(order.source)
    if order.form == "onnx":
        try:
            from rleaas.training.exports.onnx_file import write_onnx
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                f"exporting {order.checkpoint_id!r} as onnx needs {error.name!r}, which is not "
                "installed at the server",
                hint="Install the extra there: pip install 'rleaas[export]'",
            ) from error
        return write_onnx(policy, order.target, order.facts)
    if order.form == "huggingface":
        return write_huggingface(
            policy,
            order.checkpoint_id,
            order.source,
            _weights(order.source, None),
            order.target,
            order.facts,
        )
    text = None if order.facts is None else json.dumps(order.facts, ensure_ascii=False)
    if order.form == "safetensors":
        order.target.write_bytes(_weights(order.source, text))
    else:
        torch.save({"state_dict": read_weights(order.source), "facts": text}, order.target)
    return {"tensors": len(read_weights(order.source))}


def _weights(source: Path, facts: str | None) -> bytes:
    if facts is None and has_weights(source):
        return read_member(source, WEIGHTS)
    metadata = {"format": "pt", **({} if facts is None else {"facts": facts})}
    return safetensors.torch.save(read_weights(source), metadata=metadata)


def main(arguments: list[str]) -> int:
    """Do what the order's file says, and write the reply's file; 3: it failed, and says why."""
    logging.disable(logging.WARNING)
    order_path, reply_path = Path(arguments[0]), Path(arguments[1])
    order = ExportOrder.from_json(json.loads(order_path.read_bytes()))
    reply: dict[str, Any]
    try:
        reply = {"checks": export(order)}
    except Error as error:
        facts = {name: getattr(error, name) for name in ("message", "code", "hint", "retryable")}
        reply = {"error": {"type": type(error).__name__, **facts}}
    reply_path.write_bytes(json.dumps(reply).encode())
    return 3 if "error" in reply else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
