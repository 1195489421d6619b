"""Organisations and the people in them, for admins."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Mapping
from typing import cast

from rleaas._binding import D, Resource, call
from rleaas._flow import request as build
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request
from rleaas.models.access import Member, NewOrganisation, Organisation
from rleaas.resources.kinds import field_of
from rleaas.resources.references import id_of

KIND = "organisation"

OrganisationRef = str | int | Organisation
"""An organisation by its name or id, or its record."""


class OrganisationsClient(Resource[D]):
    """The organisations of the platform: whoever asks sees their own, its operators all."""

    @call
    def create(
        self,
        name: str,
        *,
        admin: str,
        limits: Mapping[str, float] | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[NewOrganisation]:
        """Add an organisation; the secret of its first admin's key is in `key.key`, this once.

        Args:
            name: what it is called.
            admin: the email of its first admin.
            limits: its quotas and rates, such as `{"environments": 20}`.
            idempotency_key: makes one organisation of a call that is repeated.

        Raises:
            PermissionDeniedError: whoever asks does not operate the platform.
            ConflictError: there is one of this name.
        """
        body: dict[str, object] = {"name": name, "admin": admin}
        if limits is not None:
            body["limits"] = {**limits}
        request = build.post(
            "/api/organisations", body, key=idempotency_key or self._context.new_key(), kind=KIND
        )
        reply = yield from ask(request, self._context)
        return read(NewOrganisation, request, reply)

    @call
    def list(self) -> Flow[list_[Organisation]]:
        """Return the organisations, the oldest first."""
        request = build.get("/api/organisations")
        reply = yield from ask(request, self._context)
        items, _ = read_list(Organisation, request, reply, "organisations")
        return items

    @call
    def get(self, organisation: OrganisationRef) -> Flow[Organisation]:
        """Return one organisation.

        Raises:
            NotFoundError: there is none of this name or id.
        """
        ref = _reference(organisation)
        request = build.get(build.path("/api/organisations/{}", ref), kind=KIND, ref=ref)
        reply = yield from ask(request, self._context)
        return read(Organisation, request, reply)

    @call
    def set_limits(
        self, organisation: OrganisationRef, limits: Mapping[str, float]
    ) -> Flow[Organisation]:
        """Set all limits of an organisation; one that is left out is lifted.

        Raises:
            PermissionDeniedError: whoever asks does not operate the platform.
        """
        ref = _reference(organisation)
        request = Request(
            method="PUT",
            path=build.path("/api/organisations/{}", ref),
            json={"limits": {**limits}},
            kind=KIND,
            ref=ref,
        )
        reply = yield from ask(request, self._context)
        return read(Organisation, request, reply)

    @call
    def members(self, organisation: OrganisationRef) -> Flow[list_[Member]]:
        """Return the people in an organisation, in the order in which they joined."""
        ref = _reference(organisation)
        request = build.get(build.path("/api/organisations/{}/members", ref), kind=KIND, ref=ref)
        reply = yield from ask(request, self._context)
        items, _ = read_list(Member, request, reply, "members")
        return items

    @call
    def put_member(
        self, organisation: OrganisationRef, email: str, role: str = "member"
    ) -> Flow[Member]:
        """Take somebody into an organisation, or change their role to `member` or `admin`.

        Raises:
            ConflictError: it would be left without an admin.
        """
        ref = _reference(organisation)
        request = Request(
            method="PUT",
            path=build.path("/api/organisations/{}/members", ref),
            json={"email": email, "role": role},
            kind=KIND,
            ref=ref,
        )
        reply = yield from ask(request, self._context)
        return read(Member, request, reply)

    @call
    def remove_member(self, organisation: OrganisationRef, user: str | Member) -> Flow[None]:
        """Take somebody out of an organisation, by id or email; their keys there end at once.

        Raises:
            NotFoundError: they are not in it.
            ConflictError: it would be left without an admin.
        """
        ref = _reference(organisation)
        who = user.user_id if isinstance(user, Member) else user
        path = f"{build.path('/api/organisations/{}/members', ref)}/{build.segment(who, 'user')}"
        request = Request(method="DELETE", path=path, kind="member", ref=who)
        yield from ask(request, self._context)


def _reference(organisation: OrganisationRef) -> str:
    if isinstance(organisation, int) and not isinstance(organisation, bool):
        return str(organisation)
    number = field_of(organisation, KIND, "id", int)
    return id_of(cast("str", organisation), KIND) if number is None else str(number)
