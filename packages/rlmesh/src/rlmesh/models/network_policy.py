"""A network as a policy: observations in, outputs turned into actions of the environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from rlmesh.models.batching import stack
from rlmesh.models.context import PredictContext
from rlmesh.models.input_form import InputForm, Shape, form_of, names_for
from rlmesh.models.outputs import ActionOption, Decide, decider, single_output

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract

# Any, in this room: observations, outputs and actions of whichever network.


class Network(Protocol):
    """Something that computes outputs for observations."""

    @property
    def inputs(self) -> Mapping[str, Shape] | None:
        """The shapes of its inputs by their names, where it declares them."""
        ...

    @property
    def is_named(self) -> bool:
        """Whether these names are those of the parts of an observation."""
        ...

    def outputs(self, observations: Any) -> Any:
        """Return the outputs for observations as the network takes them."""
        ...


class NetworkPolicy:
    """Asks a network for its outputs; its outputs are the actions until an environment is known."""

    def __init__(
        self, network: Network, *, name: str, action: ActionOption, deterministic: bool
    ) -> None:
        self._network = network
        self._name = name
        self._action: ActionOption = action
        self._deterministic = deterministic

    def beside_its_file(self) -> object:
        """Return what shapes the actions beside what was loaded; see `Model.content`."""
        return [self._action, self._deterministic]

    def for_environment(self, contract: EnvContract) -> object:
        """Return the policy for an environment.

        Raises:
            ConfigurationError: observations do not fit the inputs, or outputs make no actions.
        """
        network, inputs = self._network, self._network.inputs
        if inputs and network.is_named:
            names_for(contract, list(inputs), self._name)
        form = form_of(inputs, contract.observation_space, self._name)
        decide = decider(
            self._action,
            contract.action_space,
            deterministic=self._deterministic,
            model=self._name,
        )
        if form is InputForm.BATCH:
            return _Batches(network, decide)
        return _Singles(network, decide, bare=form is InputForm.BARE)

    def predict_batch(self, observations: Any) -> Any:
        """Return the network's first output, or what a function given as `action` makes of it."""
        outputs = self._network.outputs(observations)
        return self._action(outputs) if callable(self._action) else single_output(outputs)


class _Batches:
    def __init__(self, network: Network, decide: Decide) -> None:
        self._network = network
        self._decide = decide

    def predict_batch(self, observations: Any, contexts: Sequence[PredictContext]) -> Any:
        return self._decide(self._network.outputs(observations), contexts)


class _Singles:
    def __init__(self, network: Network, decide: Decide, *, bare: bool) -> None:
        self._network = network
        self._decide = decide
        self._bare = bare

    def predict(self, observation: Any, context: PredictContext) -> Any:
        given = observation if self._bare else stack([observation])
        outputs = self._network.outputs(given)
        if self._bare:
            outputs = _with_axis(outputs)
        return _only_row(self._decide(outputs, [context]))


def _with_axis(outputs: Any) -> Any:
    return _mapped(outputs, lambda array: array[None])


def _only_row(actions: Any) -> Any:
    return _mapped(actions, lambda array: array[0])


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return {key: _mapped(item, change) for key, item in fields.items()}
    if isinstance(value, tuple):
        return tuple(_mapped(item, change) for item in cast("tuple[object, ...]", value))
    return change(value)
