"""Values and metadata as they travel."""

from rlmesh.codec.codec import Codec, compile_codec
from rlmesh.values import NATIVE, NUMPY, Backend

__all__ = ["NATIVE", "NUMPY", "Backend", "Codec", "compile_codec"]
