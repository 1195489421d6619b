"""`rleaas login`, `rleaas whoami` and `rleaas profile …`: whom this machine asks, and as whom."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rlcore.environ import snapshot, variable
from rlcore.profile_file import profile_names, remove_profile, save_profile, use_profile
from rlcore.profiles import default_path, load_profile
from rlcore.settings import API_KEY, BASE_URL

from rleaas.cli.command import Asked
from rleaas.cli.console import print_facts, print_json, print_table, say
from rleaas.cli.nouns import noun
from rleaas.cli.options import AsJson, BaseUrl, Key, connect
from rleaas.cli.secrets import typed_secret

app = noun("profile")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The profile's name.")]
DEFAULT_NAME = "default"


def login(
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="Where to keep them.")
    ] = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Check an API key at its server, and keep both in a profile that only you can read.

    The key is asked for, or read from standard input, unless --api-key or RLEAAS_API_KEY has it.
    """
    path = _path()
    key = api_key or variable(API_KEY.variable, snapshot()) or typed_secret("API key")
    is_known = profile in profile_names(path).names
    if base_url is None and not is_known:
        # Else the server would be that of the default profile.
        base_url = variable(BASE_URL.variable, snapshot()) or BASE_URL.default
    with connect(base_url, key, profile if is_known else None) as client:
        who = client.Keys.me()
        save_profile(path, profile, {"base_url": client.base_url, "api_key": key})
    if as_json:
        print_json({"profile": profile, "path": str(path), **who.to_dict()})
        return
    say(f"logged in as {who.email or who.user_id} of {who.organisation}; kept in {path}")


def whoami(asked: Asked) -> None:
    """Show whom the server takes you for, and what you may."""
    who = asked.client.Keys.me()
    if asked.as_json:
        print_json(who)
        return
    print_facts(
        {
            "server": asked.client.base_url,
            "user": who.user_id,
            "email": who.email,
            "organisation": who.organisation,
            "scopes": " ".join(who.scopes),
            "key": who.key_id,
            "limits": who.limits,
            "expires": who.expires_at,
        }
    )


@app.command("list", epilog="Example: `rleaas profile list`")
def list_profiles(as_json: AsJson = False) -> None:
    """List the profiles, without their keys."""
    path = _path()
    found = profile_names(path)
    rows: list[dict[str, object]] = []
    for name in found.names:
        one = load_profile(path, name)
        values: Mapping[str, object] = {} if one is None else one.values
        rows.append(
            {
                "name": name,
                "default": name == found.default,
                "base_url": values.get("base_url"),
                "has_key": bool(values.get("api_key")),
            }
        )
    if as_json:
        print_json(rows)
        return
    print_table(
        ("name", "default", "server", "key"),
        [
            (
                row["name"],
                "yes" if row["default"] else "",
                row["base_url"],
                "yes" if row["has_key"] else "no",
            )
            for row in rows
        ],
        empty=f"No profiles in {path}. `rleaas login` makes one.",
    )


@app.command("use", epilog="Example: `rleaas profile use work`")
def use(name: Name, as_json: AsJson = False) -> None:
    """Make a profile the one that counts where none is named."""
    use_profile(_path(), name)
    _done({"default": name}, f"{name} is the default now", as_json)


@app.command("remove", epilog="Example: `rleaas profile remove work`")
def remove(name: Name, as_json: AsJson = False) -> None:
    """Take a profile out of the file; its key stays good until it is revoked."""
    remove_profile(_path(), name)
    _done({"removed": name}, f"removed {name}", as_json)


def _done(answer: dict[str, object], sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    say(sentence)


def _path() -> Path:
    return default_path(snapshot())
