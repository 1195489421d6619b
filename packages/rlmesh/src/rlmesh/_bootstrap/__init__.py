"""What runs first in a container; see `sandbox_env`."""
