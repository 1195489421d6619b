"""The names under which an environment's metadata holds what its author declared."""

from typing import Final

DESCRIBE_METADATA_KEY: Final = "rlmesh.describe.v1"
DESCRIBE_SCHEMA_VERSION: Final = 1
ENV_RESET_OPTIONS_KEY: Final = "rlmesh.env.v1.reset_options"
TRIAL_INDEX_OPTION: Final = "trial_index"
RESET_OPTIONS: Final = (TRIAL_INDEX_OPTION,)
TAGS_KEY: Final = "rlmesh.adapters.v1.env_tags"
BRANCH_KEY: Final = "rlmesh.adapters.v1.env_branch"
