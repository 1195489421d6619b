"""Values and metadata as they travel."""

from rlmesh.codec import nested as nested  # registers the bodies of the nested spaces
from rlmesh.codec.batch import BatchCodec, compile_batch_codec
from rlmesh.codec.codec import Codec, compile_codec
from rlmesh.codec.metadata import (
    InvalidMetadataError,
    decode_meta,
    encode_meta,
    encode_meta_lenient,
    sanitize_metadata,
)
from rlmesh.values import NATIVE, NUMPY, Backend, Buffer

__all__ = [
    "NATIVE",
    "NUMPY",
    "Backend",
    "BatchCodec",
    "Buffer",
    "Codec",
    "InvalidMetadataError",
    "compile_batch_codec",
    "compile_codec",
    "decode_meta",
    "encode_meta",
    "encode_meta_lenient",
    "sanitize_metadata",
]
