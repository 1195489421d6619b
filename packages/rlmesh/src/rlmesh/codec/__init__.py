"""Values and metadata as they travel."""

from rlmesh.codec.codec import Codec, compile_codec
from rlmesh.codec.metadata import (
    InvalidMetadataError,
    decode_meta,
    encode_meta,
    encode_meta_lenient,
    sanitize_metadata,
)
from rlmesh.values import NATIVE, NUMPY, Backend

__all__ = [
    "NATIVE",
    "NUMPY",
    "Backend",
    "Codec",
    "InvalidMetadataError",
    "compile_codec",
    "decode_meta",
    "encode_meta",
    "encode_meta_lenient",
    "sanitize_metadata",
]
