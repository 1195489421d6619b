"""Agents: register, find, list."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from rleaas._binding import D, Resource, call
from rleaas._flow import request as build
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow
from rleaas.models import (
    Agent,
    AgentBinding,
    AgentExport,
    AgentFramework,
    AgentValidation,
    AgentVersion,
    DryRun,
    Shape,
)
from rleaas.resources import agent_routes as routes
from rleaas.resources.agent_handle import AgentResource
from rleaas.resources.checkpoints import CheckpointRef
from rleaas.resources.environment_routes import EnvironmentRef
from rleaas.resources.references import IdRef, id_of, require_one_of, texts_of

FRAMEWORKS: tuple[str, ...] = get_args(AgentFramework)


class AgentsClient(Resource[D]):
    """The agents of the platform."""

    @call
    def register(
        self,
        name: str,
        base_model: str = "",
        model_ref: str | None = None,
        framework: str = "openai_compatible",
        trainable: bool = True,
        compatible_categories: Sequence[str] | None = None,
        tool_permissions: Sequence[str] | None = None,
        *,
        agent_id: str | None = None,
    ) -> Flow[AgentResource[D]]:
        """Register an agent, or change the one with this id; return its handle.

        Args:
            name: what it is called.
            base_model: the model it is built on, such as `Qwen/Qwen3-0.6B`.
            model_ref: where its model is: an image, a model on a hub, or `checkpoint://ID` for a
                checkpoint of the platform, which can then play.
            framework: `openai_compatible`, `anthropic` or `custom`.
            trainable: whether it can be trained.
            compatible_categories: the verticals that it is for.
            tool_permissions: the tools that it may call, by id or name.
            agent_id: an id of your own.

        Raises:
            ConfigurationError: the framework is none; nothing was sent.
            InvalidRequestError: the platform refuses a field.
        """
        body = {
            "id": agent_id or f"agent_{self._context.new_key()[:16]}",
            "name": name,
            "base_model": base_model or model_ref or "",
            "model_ref": model_ref,
            "framework": require_one_of(framework, FRAMEWORKS, "an agent framework"),
            "trainable": trainable,
            "compatible_categories": texts_of(compatible_categories or (), "categories"),
            "tool_permissions": texts_of(tool_permissions or (), "tools"),
        }
        request = build.post("/api/agents", body, key=self._context.new_key())
        reply = yield from ask(request, self._context)
        return self._handle(read(Agent, request, reply))

    @call
    def get(self, agent_id: IdRef) -> Flow[AgentResource[D]]:
        """Return the handle of the agent with this id.

        Raises:
            AgentNotFound: there is none; it is also a KeyError.
        """
        return self._handle((yield from routes.get(_id(agent_id), self._context)))

    @call
    def list(self) -> Flow[list_[AgentResource[D]]]:
        """Return all agents, oldest first.

        Raises:
            UnexpectedReply: the answer is no list; it never counts as an empty one.
        """
        request = build.get("/api/agents")
        reply = yield from ask(request, self._context)
        found, _ = read_list(Agent, request, reply, "agents")
        return [self._handle(record) for record in found]

    @call
    def delete(self, agent_id: IdRef) -> Flow[Shape]:
        """Delete an agent with its versions and records.

        Raises:
            AgentNotFound: there is none.
        """
        return (yield from routes.delete(_id(agent_id), self._context))

    @call
    def configure(self, /, agent_id: IdRef, **config: object) -> Flow[Agent]:
        """Change the fields that are given, which makes a new version; return the record.

        Raises:
            AgentNotFound: there is none.
        """
        return (yield from routes.configure(_id(agent_id), config, self._context))

    @call
    def list_versions(self, agent_id: IdRef) -> Flow[list_[AgentVersion]]:
        """Return what an agent was configured as, oldest first.

        Raises:
            AgentNotFound: there is none.
        """
        return (yield from routes.versions(_id(agent_id), self._context))

    @call
    def rollback(self, agent_id: IdRef, version: str) -> Flow[Agent]:
        """Configure an agent as it was at a version such as `v2`; return the record.

        Raises:
            NotFoundError: there is no such agent, or it has no such version.
        """
        return (yield from routes.roll_back(_id(agent_id), version, self._context))

    @call
    def validate(self, agent_id: IdRef) -> Flow[AgentValidation]:
        """Check an agent's configuration: its model, the model's file, and its permissions.

        Raises:
            AgentNotFound: there is none.
        """
        return (yield from routes.validate(_id(agent_id), self._context))

    @call
    def dry_run(
        self, agent_id: IdRef, environment_id: EnvironmentRef, episodes: int = 5
    ) -> Flow[DryRun]:
        """Start a few episodes in an environment; `list_dry_runs` says how they went.

        Raises:
            ConflictError: its model is not a checkpoint of the platform, so it cannot play.
        """
        return (yield from routes.dry_run(_id(agent_id), environment_id, episodes, self._context))

    @call
    def list_dry_runs(self, agent_id: IdRef) -> Flow[list_[DryRun]]:
        """Return an agent's dry runs as they stand now, newest first.

        Raises:
            AgentNotFound: there is none.
        """
        return (yield from routes.dry_runs(_id(agent_id), self._context))

    @call
    def deploy(
        self, agent_id: IdRef, environment_id: EnvironmentRef, label: str | None = None
    ) -> Flow[AgentBinding]:
        """Bind an agent, at its current version, to an environment.

        Raises:
            NotFoundError: there is no such agent or environment.
        """
        return (yield from routes.deploy(_id(agent_id), environment_id, label, self._context))

    @call
    def list_deployments(self, agent_id: IdRef) -> Flow[list_[AgentBinding]]:
        """Return what an agent was bound to, newest first.

        Raises:
            AgentNotFound: there is none.
        """
        return (yield from routes.deployments(_id(agent_id), self._context))

    @call
    def export(
        self,
        checkpoint_id: CheckpointRef,
        agent_id: IdRef | None = None,
        format: str = "huggingface",
        include_metadata: bool = True,
        include_audit_hash: bool = True,
        download_to: str | Path | None = None,
    ) -> Flow[AgentExport]:
        """Give out a checkpoint as a file, and save it where `download_to` says.

        Args:
            checkpoint_id: the checkpoint, by id or handle.
            agent_id: the agent that it is exported for, which keeps a record of it.
            format: `huggingface`, a zip with the files of a model repository; `safetensors` or
                `pytorch`, the weights alone; or `onnx`, the network, after onnxruntime took the
                same actions with it as the policy.
            include_metadata: whether what is known about it is told and put into the file.
            include_audit_hash: whether its SHA-256 is told.
            download_to: a file, or a directory that exists; the file appears only when it is
                complete and has the digest.

        Raises:
            CheckpointNotFound: there is no such checkpoint.
            UnsupportedRequestError: the server cannot make this format.
            CheckpointCorrupted: other bytes came than were promised.
        """
        return (
            yield from routes.export(
                None if agent_id is None else _id(agent_id),
                checkpoint_id,
                format,
                metadata=include_metadata,
                audit_hash=include_audit_hash,
                download_to=download_to,
                context=self._context,
            )
        )

    def _handle(self, record: Agent) -> AgentResource[D]:
        return AgentResource(self._driver, record)


def _id(agent: IdRef) -> str:
    return id_of(agent, routes.KIND)
