"""Tools: register, find, change."""

from __future__ import annotations

import json
from builtins import list as list_
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlcore import ConfigurationError

from rleaas._binding import D, Resource, call, stream
from rleaas._flow import request as build
from rleaas._flow.decode import read
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request, Stream, work
from rleaas.models import Shape, Tool, ToolsPut
from rleaas.resources.environment_routes import EnvironmentRef
from rleaas.resources.pages import collect, iterate
from rleaas.resources.references import IdRef, environment_of, given, id_of, plain, texts_of

KIND = "tool"


class ToolsClient(Resource[D]):
    """The tools of the platform, those of environments and those for all."""

    @call
    def list(
        self,
        env_id: EnvironmentRef | None = None,
        env_name: EnvironmentRef | None = None,
        category: str | None = None,
    ) -> Flow[list_[Tool]]:
        """Return tools, oldest first.

        Args:
            env_id: only those of this environment, by name, id or handle, and those for all.
            env_name: the same.
            category: only those of this category or type, whatever the case.

        Raises:
            EnvironmentNotFound: there is no such environment.
        """
        found = yield from collect(
            Tool,
            "/api/tools",
            {"environment": environment_of(env_name, env_id), "category": category},
            "tools",
            self._context,
        )
        # A server that does not know the filter answers with all of them.
        return found if category is None else [one for one in found if _is_a(one, category)]

    @stream
    def iterate(
        self, environment: EnvironmentRef | None = None, category: str | None = None
    ) -> Stream[Tool]:
        """Yield tools, oldest first, asking for them as they are read."""
        yield from iterate(
            Tool,
            "/api/tools",
            {"environment": environment_of(environment), "category": category},
            "tools",
            self._context,
        )

    @call
    def get(
        self,
        tool_id: IdRef,
        env_id: EnvironmentRef | None = None,
        env_name: EnvironmentRef | None = None,
    ) -> Flow[Tool]:
        """Return one tool, by its id or its name.

        Args:
            tool_id: the id, or the name.
            env_id: where to look for the name: an environment by name, id or handle.
            env_name: the same.

        Raises:
            ToolNotFound: there is none; it is also a KeyError.
            ConflictError: several have the name.
        """
        text = id_of(tool_id, KIND)
        request = build.get(
            _path(text), {"environment": environment_of(env_name, env_id)}, kind=KIND, ref=text
        )
        reply = yield from ask(request, self._context)
        return read(Tool, request, reply)

    @call
    def register(
        self,
        env_id: EnvironmentRef | None,
        name: str,
        tool_type: str = "custom",
        description: str = "",
        parameters: Mapping[str, object] | None = None,
        compliance_tags: Sequence[str] | None = None,
        authorization_required: bool = False,
        docker_image: str | None = None,
        spec_path: str | Path | None = None,
        *,
        category: str | None = None,
        endpoint: str | Mapping[str, object] | None = None,
        preconditions: Sequence[str | Mapping[str, object]] | None = None,
        effects: Sequence[Mapping[str, object]] | None = None,
        returns: Mapping[str, object] | None = None,
        ends_episode: bool = False,
        suggested: Mapping[str, object] | None = None,
    ) -> Flow[Tool]:
        """Add a tool to an environment and return it.

        What says what the tool does makes it one of the built-in world that the environment has:
        `endpoint`, the operations of an OpenAPI file in `spec_path`, `preconditions`, `effects`,
        `returns` or `ends_episode`. The environment then has a new version.

        Args:
            env_id: the environment, by name, id or handle; None makes it a tool for all.
            name: what agents call it.
            tool_type: such as `custom`, `read`, `write` or `approval`.
            description: what it does.
            parameters: the JSON schema of its arguments.
            compliance_tags: such as `AML` or `KYC`.
            authorization_required: whether somebody has to approve each call.
            docker_image: what runs it.
            spec_path: a file with its OpenAPI description; a `.json` file is sent as the object it
                holds, any other as its text.
            category: such as `read`, `write`, `search` or `notify`.
            endpoint: the URL that each call asks, or an object with `url` (names of arguments in
                braces are filled in), `method` (POST), `timeout_seconds` (5, at most 30) and
                `token`, which is sent as a bearer and never shown again.
            preconditions: conditions over the world's facts, its case and `arguments`, or objects
                with `condition`, `code` and `message`; one that does not hold refuses the call.
            effects: what a call makes true: `{"fact": name, "value": value}` or `{"record":
                {"table": name, "id": value, "fields": {...}}}`. A value may be `{"expression":
                text}`, which also finds what the endpoint answered as `result`.
            returns: what a call returns, by name, instead of what the endpoint answered.
            ends_episode: whether the task is over when it ran.
            suggested: the arguments that the discrete face calls it with; `$key` is the case's.

        Raises:
            EnvironmentNotFound: there is no such environment.
            ConfigurationError: the file of the description cannot be read.
            InvalidRequestError: what it does is described wrongly, or its endpoint is nowhere the
                server may reach.
            ConflictError: the environment has a tool of this name.
        """
        spec: object = None
        if spec_path is not None:
            place = Path(spec_path)
            spec = yield from work(lambda: _spec(place))
        tool: dict[str, object] = {
            "id": f"tool_custom_{self._context.new_key()[:16]}",
            "name": name,
            "type": tool_type,
            "description": description,
            "parameters": plain(parameters or {}),
            "source": "custom",
            **given(
                category=category,
                compliance_tags=None
                if compliance_tags is None
                else texts_of(compliance_tags, "tags"),
                authorization_required=authorization_required or None,
                docker_image=docker_image,
                spec=spec,
                endpoint={"url": endpoint} if isinstance(endpoint, str) else endpoint,
                preconditions=preconditions,
                effects=effects,
                returns=returns,
                ends_episode=ends_episode or None,
                suggested=suggested,
            ),
        }
        told = yield from self._put([tool], env_id)
        return told.tools[0] if told.tools else Tool.model_validate({**tool, **told.to_dict()})

    @call
    def upsert(
        self, tools: Sequence[Mapping[str, object]], env_id: EnvironmentRef | None = None
    ) -> Flow[ToolsPut]:
        """Add tools, or change those with the same ids; one without an id is known by its name.

        Args:
            tools: their fields; fields that are left out stay as they are.
            env_id: the environment of those that do not say it themselves.
        """
        return (yield from self._put([plain(tool) for tool in tools], env_id))

    @call
    def update(self, /, tool_id: IdRef, **fields: object) -> Flow[Tool]:
        """Change the fields that are given, and only those; return the tool.

        Raises:
            ToolNotFound: there is none.
        """
        text = id_of(tool_id, KIND)
        request = Request(method="PUT", path=_path(text), json=plain(fields), kind=KIND, ref=text)
        reply = yield from ask(request, self._context)
        return read(Tool, request, reply)

    @call
    def delete(self, tool_id: IdRef) -> Flow[Shape]:
        """Delete a tool.

        Raises:
            ToolNotFound: there is none.
        """
        text = id_of(tool_id, KIND)
        request = Request(method="DELETE", path=_path(text), kind=KIND, ref=text)
        reply = yield from ask(request, self._context)
        return read(Shape, request, reply)

    def _put(self, tools: Sequence[object], env: EnvironmentRef | None) -> Flow[ToolsPut]:
        body: dict[str, object] = {"tools": list_(tools)}
        place = environment_of(env)
        if place is not None:
            body["environment_id" if place.isdecimal() else "environment_name"] = (
                int(place) if place.isdecimal() else place
            )
        request = build.post(
            "/api/tools", body, key=self._context.new_key(), kind="environment", ref=place
        )
        reply = yield from ask(request, self._context)
        return read(ToolsPut, request, reply)


def _path(tool_id: str) -> str:
    return build.path("/api/tools/{}", tool_id, what="tool id")


def _is_a(tool: Tool, category: str) -> bool:
    return category.lower() in (tool.category.lower(), tool.type.lower())


def _spec(place: Path) -> object:
    try:
        text = place.read_text(encoding="utf-8")
        return json.loads(text) if place.suffix.lower() == ".json" else text
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the description {str(place)!r} cannot be read: {error}",
            hint="Pass the path of a JSON file, or of a text.",
        ) from error
