"""What an environment is put together from: its scenarios and its verifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rleaas._binding import D, call
from rleaas._flow import request as build
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow
from rleaas.models import AttachedVerifier, Cloned, Environment, Scenario, Shape
from rleaas.resources import verifier_routes
from rleaas.resources.environment_routes import KIND, EnvironmentRef, reference
from rleaas.resources.handle import Handle
from rleaas.resources.pages import collect
from rleaas.resources.references import IdRef, id_of
from rleaas.resources.scenarios import scenario_body


class EnvironmentContents(Handle[D, Environment]):
    """The part of an environment's handle that is about its scenarios and verifiers."""

    @call
    def create_scenario(
        self,
        name: str,
        task_prompt: str | None = None,
        tier: int = 1,
        available_tools: Sequence[str] | None = None,
        max_steps: int = 20,
        context_injection: Mapping[str, object] | None = None,
        success_criteria_ref: IdRef | None = None,
        tags: Sequence[str] | None = None,
    ) -> Flow[Scenario]:
        """Add a scenario to the environment and return it, with the id that it got.

        The arguments are those of `client.Scenario.create`.

        Raises:
            ConfigurationError: the tier is none; nothing was sent.
        """
        body = scenario_body(
            name,
            tier,
            task_prompt,
            available_tools,
            max_steps,
            context_injection,
            success_criteria_ref,
            tags,
        )
        request = build.post(
            self._part("scenarios"),
            body,
            key=self._context.new_key(),
            kind=KIND,
            ref=self._record.name,
        )
        reply = yield from ask(request, self._context)
        return read(Scenario, request, reply)

    @call
    def list_scenarios(self) -> Flow[list[Scenario]]:
        """Return the environment's scenarios, oldest first."""
        return (
            yield from collect(Scenario, self._part("scenarios"), {}, "scenarios", self._context)
        )

    @call
    def clone_scenarios(self, source_env_name: EnvironmentRef) -> Flow[Cloned]:
        """Copy another environment's scenarios to this one, with ids of their own.

        Raises:
            EnvironmentNotFound: there is no such environment.
        """
        return (yield from self._clone("clone-scenarios", source_env_name))

    @call
    def attach_verifier(self, verifier_id: IdRef, weight: float = 1.0) -> Flow[Shape]:
        """Let a verifier judge the environment, with a share of the score; again, with another.

        Raises:
            VerifierNotFound: there is no such verifier.
        """
        text = id_of(verifier_id, verifier_routes.KIND)
        return (yield from verifier_routes.attach(self._record.name, text, weight, self._context))

    @call
    def detach_verifier(self, verifier_id: IdRef) -> Flow[Shape]:
        """Let a verifier judge the environment no more; the verifier stays.

        Raises:
            NotFoundError: it does not judge it, or does not exist.
        """
        text = id_of(verifier_id, verifier_routes.KIND)
        return (yield from verifier_routes.detach(self._record.name, text, self._context))

    @call
    def list_verifiers(self) -> Flow[list[AttachedVerifier]]:
        """Return the verifiers that judge the environment, with their weights."""
        request = build.get(self._part("verifiers"), kind=KIND, ref=self._record.name)
        reply = yield from ask(request, self._context)
        found, _ = read_list(AttachedVerifier, request, reply, "verifiers")
        return found

    @call
    def clone_verifiers(self, source_env_name: EnvironmentRef) -> Flow[Cloned]:
        """Copy another environment's verifiers to this one, attached with the same weights.

        Raises:
            EnvironmentNotFound: there is no such environment.
        """
        return (yield from self._clone("clone-verifiers", source_env_name))

    def _clone(self, action: str, source: EnvironmentRef) -> Flow[Cloned]:
        name = reference(source)
        request = build.post(
            self._part(action),
            {"source": name},
            key=self._context.new_key(),
            kind=KIND,
            ref=name,
        )
        reply = yield from ask(request, self._context)
        return read(Cloned, request, reply)

    def _part(self, part: str) -> str:
        name = self._record.name
        return build.path("/api/environments/{}", name, what="environment name") + f"/{part}"
