"""What an environment's process is told besides its arguments: its config, tools and data."""

import json
import os
import tempfile
from pathlib import Path
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.asset_files import AssetFiles
from rleaas.server.keys import ServerKeys
from rleaas.server.rules.json_values import items
from rleaas.server.store import acting_tools, data_assets
from rleaas.server.store.tables import EnvironmentRow, JsonObject, ToolRow, VersionRow

VARIABLE: Final = "RLEAAS_ENVIRONMENT_FILE"
"""Names the file in the environment of the process."""

_TOOL_SETTINGS: Final = ("access_pattern", "tool_names", "approval_mode")


def facts(
    session: Session, version: VersionRow, assets: AssetFiles, keys: ServerKeys
) -> JsonObject:
    """What the process is told about a version as it is now, with the secrets of its tools."""
    row = version.environment
    return {
        "name": row.name,
        "version": version.version,
        "config": version.config,
        "tool_access": _tool_access(session, row),
        "tools": acting_tools.told(session, version, keys),
        "data": [
            {
                "id": asset.id,
                "name": asset.name,
                "media_type": asset.media_type,
                "sha256": asset.sha256,
                "path": str(assets.path(asset.organisation_id, asset.sha256).absolute()),
                "injection_config": attachment.injection_config,
            }
            for attachment, asset in data_assets.attached(session, row)
        ],
    }


def _tool_access(session: Session, row: EnvironmentRow) -> JsonObject:
    told: JsonObject = {name: row.details.get(name) for name in _TOOL_SETTINGS}
    listed = row.details.get("tool_names")
    if listed is not None:
        # An environment knows its tools by their names alone, whatever they were listed by.
        rows = session.execute(select(ToolRow.id, ToolRow.name))
        by_id = {row.id: row.name for row in rows}
        told["tool_names"] = [by_id.get(str(one), str(one)) for one in items(listed)]
    return told


def place(log: Path) -> Path:
    """Where the file of the process with this log is."""
    return log.with_suffix(".json")


def write(log: Path, told: JsonObject) -> None:
    """Put the file in its place, readable by this user alone."""
    target = place(log)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(told, file)
    Path(name).replace(target)
