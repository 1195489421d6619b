"""API keys, and the profile of whoever asks."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import cast

from rlcore import ConfigurationError

from rleaas._binding import D, Resource, call
from rleaas._flow import request as build
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request
from rleaas.models.access import (
    ApiKey,
    Identity,
    NewApiKey,
    Profile,
    RevokedKey,
    SsoStatus,
)
from rleaas.resources import identity_routes
from rleaas.resources.references import IdRef, id_of, texts_of

KIND = "api_key"
PROFILE_FIELDS = ("full_name", "title", "bio", "avatar_url")

KeyRef = str | int | ApiKey
"""A key by its id, or its record."""


class KeysClient(Resource[D]):
    """The API keys of whoever asks; an admin sees all of the organisation."""

    @call
    def create(
        self,
        name: str,
        *,
        scopes: Sequence[str] | None = None,
        expires_in: float | timedelta | None = None,
        expires_at: datetime | None = None,
        limits: Mapping[str, float] | None = None,
        user: str | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[NewApiKey]:
        """Make a key and return it with its secret in `key`, which no other call tells.

        Args:
            name: what it is for.
            scopes: of `read`, `write` and `admin`; `read` and `write` by default. A key cannot give
                a scope that it has not itself.
            expires_in: seconds, or a `timedelta`; without an end it is good until it is revoked.
            expires_at: the moment instead, which has a time zone.
            limits: its own quotas and rates, such as `{"requests_per_minute": 600}`; for admins.
            user: the member that it is for, by id or email; for admins.
            idempotency_key: makes one key of a call that is repeated.

        Raises:
            PermissionDeniedError: one may not give that.
            ConflictError: the idempotency key made a key before, and that one is in use.
        """
        optional: dict[str, object | None] = {
            "scopes": None if scopes is None else texts_of(scopes, "scopes"),
            "expires_in": _seconds(expires_in),
            "expires_at": _moment(expires_at),
            "limits": None if limits is None else {**limits},
            "user": user,
        }
        body: dict[str, object] = {
            "name": name,
            **{field: value for field, value in optional.items() if value is not None},
        }
        request = build.post(
            "/api/keys", body, key=idempotency_key or self._context.new_key(), kind=KIND
        )
        reply = yield from ask(request, self._context)
        return read(NewApiKey, request, reply)

    @call
    def list(self) -> Flow[list_[ApiKey]]:
        """Return the keys, the newest first, without their secrets."""
        request = build.get("/api/keys")
        reply = yield from ask(request, self._context)
        items, _ = read_list(ApiKey, request, reply, "keys")
        return items

    @call
    def revoke(self, key_id: KeyRef) -> Flow[RevokedKey]:
        """End a key at once; what comes with it is answered with 401 from then on.

        Raises:
            NotFoundError: there is no such key, or it is somebody else's.
        """
        ref = id_of(str(key_id) if type(key_id) is int else cast("IdRef", key_id), "API key")
        request = Request(method="DELETE", path=build.path("/api/keys/{}", ref), kind=KIND, ref=ref)
        reply = yield from ask(request, self._context)
        return read(RevokedKey, request, reply)

    @call
    def me(self) -> Flow[Identity]:
        """Return who asks, for which organisation, and what they may."""
        return (yield from identity_routes.me(self._context))

    @call
    def sso_status(self) -> Flow[SsoStatus]:
        """Return whether people sign in with a provider of identities."""
        return (yield from identity_routes.sso_status(self._context))


class ProfileClient(Resource[D]):
    """What the person who asks says about themselves."""

    @call
    def get(self) -> Flow[Profile]:
        """Return the profile; fields that were never set are None."""
        request = build.get("/api/profile")
        reply = yield from ask(request, self._context)
        return read(Profile, request, reply)

    @call
    def update(
        self,
        *,
        full_name: str | None = None,
        title: str | None = None,
        bio: str | None = None,
        avatar_url: str | None = None,
        clear: Sequence[str] = (),
    ) -> Flow[Profile]:
        """Set fields and return the whole profile; what is None stays as it was.

        Args:
            full_name: the name to show.
            title: what they do.
            bio: more about them.
            avatar_url: a picture.
            clear: names of fields to empty.

        Raises:
            ConfigurationError: `clear` names something that is no field.
        """
        for name in texts_of(clear, "fields"):
            if name not in PROFILE_FIELDS:
                raise ConfigurationError(
                    f"{name!r} is not a field of a profile",
                    hint=f"The fields are {', '.join(PROFILE_FIELDS)}.",
                )
        given = {"full_name": full_name, "title": title, "bio": bio, "avatar_url": avatar_url}
        body: dict[str, str | None] = {
            **dict.fromkeys(clear, None),
            **{name: value for name, value in given.items() if value is not None},
        }
        request = Request(method="PUT", path="/api/profile", json=body)
        reply = yield from ask(request, self._context)
        return read(Profile, request, reply)


def _seconds(value: float | timedelta | None) -> float | None:
    return value.total_seconds() if isinstance(value, timedelta) else value


def _moment(value: datetime | None) -> str | None:
    if value is None:
        return None
    if value.tzinfo is None:
        raise ConfigurationError(
            "expires_at has no time zone", hint="Write datetime.now(UTC) + timedelta(days=30)."
        )
    return value.isoformat()
