"""An agent, and what can be done with it."""

from __future__ import annotations

from pathlib import Path

from rleaas._binding import D, call
from rleaas._flow.wire import Flow
from rleaas.models import (
    Agent,
    AgentBinding,
    AgentExport,
    AgentValidation,
    AgentVersion,
    DryRun,
    Shape,
)
from rleaas.resources import agent_routes as routes
from rleaas.resources.checkpoints import CheckpointRef
from rleaas.resources.environment_routes import EnvironmentRef
from rleaas.resources.handle import Handle


class AgentResource(Handle[D, Agent]):
    """A registered agent."""

    @property
    def id(self) -> str:
        """Its id."""
        return self._record.id

    @property
    def name(self) -> str:
        """Its name."""
        return self._record.name

    @property
    def base_model(self) -> str:
        """The model it is built on."""
        return self._record.base_model

    @property
    def model_ref(self) -> str | None:
        """Where its model is, such as `checkpoint://ID`."""
        return self._record.model_ref

    @property
    def framework(self) -> str | None:
        """`openai_compatible`, `anthropic` or `custom`."""
        return self._record.framework

    @property
    def trainable(self) -> bool:
        """Whether it can be trained."""
        return self._record.trainable

    @property
    def compatible_categories(self) -> list[str]:
        """The verticals that it is for."""
        return self._record.compatible_categories

    @property
    def tool_permissions(self) -> list[str]:
        """The tools that it may call, by id or name."""
        return self._record.tool_permissions

    @property
    def version(self) -> str | None:
        """Its current version, such as `v2`."""
        return self._record.version

    def __repr__(self) -> str:
        return f"<AgentResource {self.name!r} id={self.id} version={self.version}>"

    @call
    def refresh(self) -> Flow[AgentResource[D]]:
        """Ask the platform for the agent as it is now; return this handle."""
        self._record = yield from routes.get(self.id, self._context)
        return self

    @call
    def configure(self, /, **config: object) -> Flow[Agent]:
        """Change the fields that are given, which makes a new version; return the record."""
        self._record = yield from routes.configure(self.id, config, self._context)
        return self._record

    @call
    def list_versions(self) -> Flow[list[AgentVersion]]:
        """Return what it was configured as, oldest first."""
        return (yield from routes.versions(self.id, self._context))

    @call
    def rollback(self, version: str) -> Flow[Agent]:
        """Configure it as it was at a version such as `v2`; return the record.

        Raises:
            NotFoundError: it has no such version.
        """
        self._record = yield from routes.roll_back(self.id, version, self._context)
        return self._record

    @call
    def validate(self) -> Flow[AgentValidation]:
        """Check its configuration: its model, the model's file, and its permissions."""
        return (yield from routes.validate(self.id, self._context))

    @call
    def dry_run(self, environment_id: EnvironmentRef, episodes: int = 5) -> Flow[DryRun]:
        """Start a few episodes in an environment; `list_dry_runs` says how they went.

        Raises:
            ConflictError: its model is not a checkpoint of the platform, so it cannot play.
        """
        return (yield from routes.dry_run(self.id, environment_id, episodes, self._context))

    @call
    def list_dry_runs(self) -> Flow[list[DryRun]]:
        """Return its dry runs as they stand now, newest first."""
        return (yield from routes.dry_runs(self.id, self._context))

    @call
    def deploy(
        self, environment_id: EnvironmentRef, label: str | None = None
    ) -> Flow[AgentBinding]:
        """Bind it, at its current version, to an environment."""
        return (yield from routes.deploy(self.id, environment_id, label, self._context))

    @call
    def list_deployments(self) -> Flow[list[AgentBinding]]:
        """Return what it was bound to, newest first."""
        return (yield from routes.deployments(self.id, self._context))

    @call
    def export(
        self,
        checkpoint_id: CheckpointRef,
        format: str = "huggingface",
        include_metadata: bool = True,
        include_audit_hash: bool = True,
        download_to: str | Path | None = None,
    ) -> Flow[AgentExport]:
        """Give out a checkpoint as a file, and save it where `download_to` says.

        Args:
            checkpoint_id: the checkpoint, by id or handle.
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
                self.id,
                checkpoint_id,
                format,
                metadata=include_metadata,
                audit_hash=include_audit_hash,
                download_to=download_to,
                context=self._context,
            )
        )

    @call
    def delete(self) -> Flow[Shape]:
        """Delete it with its versions and records."""
        return (yield from routes.delete(self.id, self._context))
