"""Where the code of environments is kept; tokens are encrypted and never given back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from rlcore import NotFoundError, Secret
from sqlalchemy.orm import Session

from rleaas.server.git import Remote, without_password
from rleaas.server.keys import ServerKeys
from rleaas.server.rules.json_values import text
from rleaas.server.store.tables import EnvironmentRow, JsonObject, RepositoryRow

PURPOSE: Final = "repositories"
_MOST_CHECKS: Final = 10


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as a client names it; an empty token leaves the one that is kept."""

    url: str
    provider: str = "github"
    branch: str = "main"
    context_path: str = ""
    auth_type: str = "none"
    username: str = ""
    token: str = ""


def url_in(given: Mapping[str, object]) -> str | None:
    """The URL in the `repo` of a registration, in either spelling."""
    return text(given.get("repoUrl")) or text(given.get("repo_url"))


def from_client(given: Mapping[str, object]) -> Repository:
    """Read the `repo` of a registration, whose keys have two spellings."""

    def said(one: str, other: str, default: str) -> str:
        return text(given.get(one)) or text(given.get(other)) or default

    return Repository(
        url=url_in(given) or "",
        provider=said("provider", "provider", "github"),
        branch=said("branch", "branch", "main"),
        context_path=said("contextPath", "context_path", ""),
        auth_type=said("authType", "auth_type", "none"),
        username=said("username", "username", ""),
        token=said("token", "token", ""),
    )


def save(
    session: Session, environment: EnvironmentRow, given: Repository, keys: ServerKeys
) -> RepositoryRow:
    """Keep the configuration in place of what was there."""
    row = session.get(RepositoryRow, environment.id)
    sealed = keys.seal(PURPOSE, Secret(given.token)) if given.token else None
    if row is None:
        row = RepositoryRow(environment_id=environment.id, encrypted_token=None, checks=[])
        session.add(row)
    elif row.url != without_password(given.url):
        row.encrypted_token = None  # a token goes to the repository it was given for only
    row.provider, row.url, row.branch = given.provider, without_password(given.url), given.branch
    row.context_path, row.auth_type, row.username = (
        given.context_path,
        given.auth_type,
        given.username,
    )
    row.encrypted_token = None if given.auth_type == "none" else sealed or row.encrypted_token
    row.updated_at = datetime.now(UTC)
    session.flush()
    return row


def find(session: Session, environment: EnvironmentRow) -> RepositoryRow:
    """The configuration of an environment.

    Raises:
        NotFoundError: it has none.
    """
    row = session.get(RepositoryRow, environment.id)
    if row is None:
        raise NotFoundError(
            kind="repository", ref=environment.name, hint="Save one with PUT .../repo first"
        )
    return row


def remote(row: RepositoryRow, keys: ServerKeys) -> Remote:
    """The repository as it is asked, with its token."""
    token = None if row.encrypted_token is None else keys.unseal(PURPOSE, row.encrypted_token)
    return Remote(row.url, row.branch, row.username, token)


def note_check(row: RepositoryRow, check: JsonObject) -> None:
    """Remember how the last checks went."""
    row.checks = [*row.checks, check][-_MOST_CHECKS:]


def shown(row: RepositoryRow) -> JsonObject:
    """The configuration without its token."""
    return {
        "provider": row.provider,
        "repoUrl": row.url,
        "branch": row.branch,
        "contextPath": row.context_path,
        "authType": row.auth_type,
        "username": row.username,
        "hasToken": row.encrypted_token is not None,
        "checks": row.checks,
    }
