"""API keys, people and organisations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from rleaas.models.shape import Moment, Shape


class ApiKey(Shape):
    """A key without its secret, which was told once.

    Attributes:
        id: its id.
        name: what it was called.
        prefix: how its secret begins.
        scopes: `read`, `write`, `admin`.
        limits: its own quotas and rates.
        user_id: whose it is.
        is_active: whether it is still good; a revoked one is not.
        created_at: when it was made.
        expires_at: when it ends; None is never.
        last_used_at: when it was last used, to the minute; None is never.
    """

    id: str
    name: str = ""
    prefix: str = ""
    scopes: tuple[str, ...] = ()
    limits: Mapping[str, float] = Field(default_factory=dict[str, float])
    user_id: str | None = None
    is_active: bool = True
    created_at: Moment | None = None
    expires_at: Moment | None = None
    last_used_at: Moment | None = None


class NewApiKey(ApiKey):
    """A key that was just made; `key` is its secret, which no other call tells."""

    key: str = Field(repr=False)


class RevokedKey(Shape):
    """The answer to a revocation."""

    id: str
    revoked: bool


class Profile(Shape):
    """What a person says about themselves; what they have not said is None."""

    user_id: str | None = None
    email: str | None = None
    full_name: str | None = None
    title: str | None = None
    bio: str | None = None
    avatar_url: str | None = None


class Identity(Shape):
    """Who asks, for which organisation, and what they may."""

    other_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"organisation": ("org",)}

    user_id: str
    email: str = ""
    organisation: str = ""
    organisation_id: int | None = None
    scopes: tuple[str, ...] = ()
    key_id: str | None = None
    limits: Mapping[str, float] = Field(default_factory=dict[str, float])
    expires_at: Moment | None = None


class SsoStatus(Shape):
    """Whether people sign in with a provider of identities."""

    sso_enabled: bool = False
    provider: str = ""
    domains: tuple[str, ...] = ()


class Organisation(Shape):
    """Whoever owns rows: a team with its members, keys and limits."""

    id: int
    name: str
    limits: Mapping[str, float] = Field(default_factory=dict[str, float])
    created_at: Moment | None = None


class NewOrganisation(Organisation):
    """An organisation that was just made, with the key of its first admin."""

    key: NewApiKey


class Member(Shape):
    """A person in an organisation; `role` is `member` or `admin`."""

    user_id: str
    email: str
    role: str
    joined_at: Moment | None = None
