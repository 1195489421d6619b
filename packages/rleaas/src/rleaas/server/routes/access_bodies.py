"""What requests about keys, people and organisations may say."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from rleaas.server.routes.bodies import Body, JsonObject

LONGEST_LIFE = 100 * 365 * 86_400.0

ScopeName = Literal["read", "write", "admin"]
LimitName = Literal[
    "environments",
    "jobs",
    "storage_bytes",
    "requests_per_minute",
    "job_wall_seconds",
    "job_timesteps",
    "job_processes",
]
Limits = dict[LimitName, Annotated[float, Field(ge=0, le=1e15)]]
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"\S")]
Email = Annotated[str, Field(min_length=3, max_length=254, pattern=r"^[^@\s]+@[^@\s]+$")]
RoleName = Literal["member", "admin"]
_Text = Annotated[str, Field(max_length=2000)]


def limits_of(limits: Limits | None) -> JsonObject:
    """The limits as they are stored."""
    return {str(name): value for name, value in (limits or {}).items()}


class CreateKey(Body):
    """A new key: by default for reading and writing, until it is revoked."""

    name: Name
    scopes: Annotated[list[ScopeName], Field(min_length=1)] | None = None
    expires_in: Annotated[float, Field(gt=0, le=LONGEST_LIFE)] | None = None
    expires_at: AwareDatetime | None = None
    limits: Limits | None = None
    user: Annotated[str, Field(min_length=1, max_length=254)] | None = None


class ChangeProfile(Body):
    """The fields to change; null takes one away."""

    full_name: _Text | None = None
    title: _Text | None = None
    bio: _Text | None = None
    avatar_url: _Text | None = None


class CreateOrganisation(Body):
    """A new organisation with its first admin, who gets a key."""

    name: Name
    admin: Email
    limits: Limits | None = None


class ChangeOrganisation(Body):
    """An organisation's limits, all of them."""

    limits: Limits


class PutMember(Body):
    """A person and their role."""

    email: Email
    role: RoleName = "member"
