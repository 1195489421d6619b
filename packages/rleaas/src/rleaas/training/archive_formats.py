"""What the files of a checkpoint are called inside, for who writes them and who takes them."""

from typing import Final

POLICY_FORMAT: Final = "rleaas.checkpoint.v1"
STATE_FORMAT: Final = "rleaas.state.v1"

MANIFEST: Final = "manifest.json"
"""The member of a policy file in which it says what it is."""

WEIGHTS: Final = "policy.safetensors"
"""Its weights."""

STATE_TREE: Final = "state.json"
"""The member of a state file in which its parts are, but for tensors and arrays."""

STATE_TENSORS: Final = "tensors.safetensors"
"""The tensors of a state file."""
