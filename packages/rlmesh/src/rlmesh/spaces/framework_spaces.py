"""Spaces whose samples are a framework's arrays."""

from __future__ import annotations

from rlmesh.backends.frameworks import backend_of
from rlmesh.spaces.space import Space, SpaceSpec, space_from_spec


def numpy_space(spec: SpaceSpec) -> Space:
    """Return the space of a description; its samples hold NumPy arrays."""
    return space_from_spec(spec, bridge=backend_of("numpy"))


def torch_space(spec: SpaceSpec, *, device: object = None) -> Space:
    """Return the space of a description; its samples hold tensors, on a device if one is given.

    Raises:
        ConfigurationError: there is no such device here.
    """
    return space_from_spec(spec, bridge=backend_of("torch", device))


def jax_space(spec: SpaceSpec, *, device: object = None) -> Space:
    """Return the space of a description; its samples hold JAX arrays.

    Raises:
        ConfigurationError: there is no such device here.
    """
    return space_from_spec(spec, bridge=backend_of("jax", device))
