"""What a registered environment is made of and how it may be used, from its handle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rleaas._binding import D, call
from rleaas._flow.wire import Flow
from rleaas.models import Environment, Shape
from rleaas.models.environment import EnvironmentVersion
from rleaas.models.environment_parts import (
    DataAttachment,
    EnvironmentAnalysis,
    PublicUrls,
    RepositoryConfig,
    RiskReport,
)
from rleaas.resources import environment_parts as parts
from rleaas.resources.handle import Handle
from rleaas.resources.references import IdRef, id_of, ids_of


class EnvironmentSettings(Handle[D, Environment]):
    """Versions, tools, data, repository and reports of an environment."""

    @call
    def versions(self) -> Flow[list[EnvironmentVersion]]:
        """Return every version, oldest first; `name@3` addresses the third."""
        return (yield from parts.versions(self._record.name, self._context))

    @call
    def configure_tools(
        self,
        access_pattern: str | None = None,
        tool_names: Sequence[IdRef] | None = None,
        approval_mode: str | None = None,
    ) -> Flow[Environment]:
        """Say which tools episodes may call, and what happens to calls that need approval.

        The environment's process is told when it starts, in the file that the variable
        `RLEAAS_ENVIRONMENT_FILE` names; it decides on each call. One that runs is told at its next
        start, after `stop()`.

        Args:
            access_pattern: `full` or `read_only`; takes the place of a list.
            tool_names: the tools, by id, name or record; takes the place of a pattern.
            approval_mode: `auto_grant`, `block` or `real_approval`.

        Raises:
            ConfigurationError: a pattern and a list at once; nothing was sent.
            InvalidRequestError: a word is not one of these, or a tool is not known.
        """
        self._record = yield from parts.configure_tools(
            self._record.name,
            access_pattern,
            None if tool_names is None else ids_of(tool_names, "tool"),
            approval_mode,
            self._context,
        )
        return self._record

    @call
    def attach_data(
        self,
        data_asset_id: IdRef,
        injection_config: Mapping[str, object] | None = None,
    ) -> Flow[DataAttachment]:
        """Give the environment an asset that was uploaded with `client.DataAsset.upload`.

        The environment's process finds its path and the injection in the file that the variable
        `RLEAAS_ENVIRONMENT_FILE` names: JSON with `name`, `version`, `config`, `tool_access` and
        `data`. It is written when the process starts; one that runs sees it after `stop()`.

        Raises:
            NotFoundError: there is no such asset.
        """
        asset = id_of(data_asset_id, "data asset")
        return (
            yield from parts.attach_data(self._record.name, asset, injection_config, self._context)
        )

    @call
    def list_data(self) -> Flow[list[DataAttachment]]:
        """Return what data the environment is given."""
        return (yield from parts.list_data(self._record.name, self._context))

    @call
    def detach_data(self, data_asset_id: IdRef) -> Flow[Shape]:
        """Take an asset away from the environment; the asset itself stays.

        Raises:
            NotFoundError: the environment has not got it.
        """
        asset = id_of(data_asset_id, "data asset")
        return (yield from parts.detach_data(self._record.name, asset, self._context))

    @call
    def save_repo_config(
        self,
        provider: str = "github",
        repo_url: str = "",
        branch: str = "main",
        context_path: str = "",
        auth_type: str = "none",
        username: str = "",
        token: str = "",
    ) -> Flow[RepositoryConfig]:
        """Keep where the environment's code is; the token is stored encrypted and never told.

        An empty token keeps the one that is there, as long as the URL is the same.
        """
        return (
            yield from parts.save_repository(
                self._record.name,
                provider,
                repo_url,
                branch,
                context_path,
                auth_type,
                username,
                token,
                self._context,
            )
        )

    @call
    def load_repo_config(self) -> Flow[RepositoryConfig]:
        """Return where the environment's code is, without the token.

        Raises:
            NotFoundError: none was saved.
        """
        return (
            yield from parts.load(
                RepositoryConfig, "/api/environments/{}/repo", self._record.name, self._context
            )
        )

    @call
    def get_risk_report(self) -> Flow[RiskReport]:
        """Return what was refused around the environment, and the thresholds in force."""
        return (
            yield from parts.load(
                RiskReport, "/environments/{}/risk-report", self._record.name, self._context
            )
        )

    @call
    def analyze(self) -> Flow[EnvironmentAnalysis]:
        """Return what is known of the environment's code; its repository is looked into now.

        Raises:
            InvalidRequestError: the repository does not answer.
        """
        return (
            yield from parts.load(
                EnvironmentAnalysis,
                "/api/environment/{}/analyze",
                self._record.name,
                self._context,
                parts.REPOSITORY_SECONDS,
            )
        )

    @call
    def public_urls(self) -> Flow[PublicUrls]:
        """Return the URLs that deployments of the environment have been given."""
        return (
            yield from parts.load(
                PublicUrls, "/api/environments/{}/public-urls", self._record.name, self._context
            )
        )
