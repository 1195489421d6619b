"""Policies of stable-baselines3, from the zip files that it saves."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import torch
from rlcore import ConfigurationError, MissingDependencyError
from rlcore.log import logger

from rlmesh.models.context import PredictContext
from rlmesh.models.model_files import ModelFileError, digest_of, unreadable
from rlmesh.models.numpy_model import Model as NumpyModel
from rlmesh.spaces import Dict, Space, Tuple, from_gymnasium_space
from rlmesh.spaces.box import Box
from rlmesh.spaces.discrete import Discrete
from rlmesh.spaces.multi import MultiDiscrete

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract

# Any, in this room: what the library makes, and leaves without types.

log = logger("rlmesh", "models")

_STATE: Final = "rlmesh.sb3_state"
# By what an algorithm keeps in its file; the first that fits.
_BY_FIELD: Final = (
    ("top_quantiles_to_drop_per_net", "sb3_contrib:TQC"),
    ("cg_max_steps", "sb3_contrib:TRPO"),
    ("n_quantiles", "sb3_contrib:QRDQN"),
    ("clip_range", "stable_baselines3:PPO"),
    ("exploration_initial_eps", "stable_baselines3:DQN"),
    ("target_entropy", "stable_baselines3:SAC"),
    ("target_policy_noise", "stable_baselines3:TD3"),
    ("gae_lambda", "stable_baselines3:A2C"),
)
# What a VecNormalize turns observations into others by.
_SCALING: Final = ("obs_rms", "clip_obs", "epsilon", "norm_obs", "norm_obs_keys")
_BY_POLICY: Final = (
    ("sb3_contrib.common.recurrent", "sb3_contrib:RecurrentPPO"),
    ("sb3_contrib.common.maskable", "sb3_contrib:MaskablePPO"),
    ("sb3_contrib.qrdqn", "sb3_contrib:QRDQN"),
    ("sb3_contrib.tqc", "sb3_contrib:TQC"),
    ("sb3_contrib.crossq", "sb3_contrib:CrossQ"),
    ("sb3_contrib.ars", "sb3_contrib:ARS"),
)


def _none_learned(progress: float) -> float:
    return 0.0


# What only learning needs is not unpickled: it is what breaks between versions.
_NOT_NEEDED: Final[Mapping[str, object]] = {
    "learning_rate": 0.0,
    "lr_schedule": _none_learned,
    "clip_range": _none_learned,
    "clip_range_vf": None,
    "exploration_schedule": _none_learned,
    "_last_obs": None,
    "_last_original_obs": None,
    "_last_episode_starts": None,
    "ep_info_buffer": None,
    "ep_success_buffer": None,
}


def load_sb3(
    path: Path,
    *,
    device: object = None,
    deterministic: bool = True,
    normalize: object = None,
    algorithm: object = None,
    name: str | None = None,
) -> NumpyModel[Any, Any]:
    """Return the policy in a file that stable-baselines3 saved.

    Loading it executes code that is pickled in the file.

    Raises:
        ModelFileError: it cannot be read.
        MissingDependencyError: stable-baselines3, or what the policy is from, is not installed.
    """
    kind = _algorithm(path, algorithm)
    log.warning("loading %s runs code that is pickled in it: load only what you trust", path.name)
    try:
        loaded = kind.load(
            path, device=device or "auto", custom_objects=dict(_NOT_NEEDED), print_system_info=False
        )
    except Exception as error:  # unpickling may raise anything
        raise unreadable(path, "a stable-baselines3 file", error) from error
    statistics = None if normalize is None else _statistics(normalize)
    policy = Sb3Policy(loaded, deterministic=deterministic, normalize=statistics)
    return NumpyModel(
        # Samples are drawn by each episode's own seeds, whoever else is asked for.
        policy if policy.is_recurrent or not deterministic else BatchedSb3Policy.of(policy),
        name=name or f"{kind.__name__} {path.stem}",
        # A policy that is given other numbers is another policy.
        digest=digest_of(path, *([Path(normalize)] if isinstance(normalize, str | Path) else [])),
    )


class Sb3Policy:
    """An algorithm of stable-baselines3 as rlmesh asks it, one observation at a time."""

    def __init__(
        self, algorithm: Any, *, deterministic: bool, normalize: Callable[[Any], Any] | None
    ) -> None:
        self.algorithm = algorithm
        self.deterministic = deterministic
        self.normalize = normalize
        network = algorithm.policy
        self.is_recurrent = "recurrent" in type(network).__module__ or hasattr(
            network, "lstm_actor"
        )
        network.set_training_mode(False)
        # It stays in that mode. stable-baselines3 would walk all modules to set it at each
        # prediction, a third of the time of a small network.
        network.set_training_mode = _already_set

    def beside_its_file(self) -> object:
        """Return what shapes the actions beside what was loaded; see `Model.content`."""
        trained: Any = getattr(self.normalize, "__self__", None)
        scaled = {name: getattr(trained, name, None) for name in _SCALING}
        return [self.deterministic, self.normalize is not None, scaled]

    def for_environment(self, contract: EnvContract) -> Sb3Policy:
        """Return the policy itself.

        Raises:
            ConfigurationError: it was trained with other spaces.
        """
        for what in ("observation_space", "action_space"):
            trained, found = getattr(self.algorithm, what), getattr(contract, what)
            mine = from_gymnasium_space(trained)
            if not (_same(mine, found) or (what == "observation_space" and _moved(mine, found))):
                raise ConfigurationError(
                    f"the policy was trained with the {what} {mine!r}, and {contract.id!r} has "
                    f"{found!r}",
                    hint="Wrap the environment as it was for training, or give another policy.",
                )
        return self

    def predict(self, observation: Any, context: PredictContext) -> Any:
        """Return the action for one observation; a recurrent state is the episode's."""
        memory = context["state"]
        drawn = nullcontext() if self.deterministic else self._drawing(context["predict_seed"])
        with drawn:
            action, memory[_STATE] = self.algorithm.predict(
                self._given(observation),
                state=memory.get(_STATE),
                episode_start=np.array([context["predict_index"] == 0]),
                deterministic=self.deterministic,
            )
        return action.item() if np.ndim(action) == 0 else action

    @contextmanager
    def _drawing(self, seed: int | None) -> Generator[None]:
        """Have the library's samples, which are of generators of the process, follow a seed."""
        if seed is None:
            yield
            return
        device: Any = self.algorithm.device
        before = np.random.get_state()
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            np.random.seed(seed)
            self.algorithm.action_space.seed(seed)  # which exploring algorithms sample
            try:
                yield
            finally:
                np.random.set_state(before)

    def _given(self, observation: Any) -> Any:
        return observation if self.normalize is None else self.normalize(observation)


class BatchedSb3Policy(Sb3Policy):
    """One without memory, which takes observations of several episodes at once."""

    @classmethod
    def of(cls, policy: Sb3Policy) -> BatchedSb3Policy:
        """Return the same policy with batches."""
        return cls(policy.algorithm, deterministic=policy.deterministic, normalize=policy.normalize)

    def predict_batch(self, observations: Any, contexts: Sequence[PredictContext]) -> Any:
        """Return the actions for a batch."""
        given = self._given(observations)
        return self.algorithm.predict(given, deterministic=self.deterministic)[0]


def _already_set(mode: bool) -> None:
    pass


def _algorithm(path: Path, given: object) -> Any:
    if isinstance(given, type):
        return given
    if given is not None:
        where = str(given)
        home = where if ":" in where else f"stable_baselines3:{where.upper()}"
    else:
        home = _home(path)
    module, _, attribute = home.partition(":")
    try:
        library = import_module(module)
    except ImportError as error:
        extra = "rlmesh[sb3]" if module == "stable_baselines3" else module.replace("_", "-")
        raise MissingDependencyError(
            f"{path.name!r} needs {module}, which cannot be imported: {error}",
            hint=f"Install {extra}.",
        ) from error
    found = getattr(library, attribute, None)
    if found is None:
        raise ConfigurationError(
            f"{module} has no algorithm {attribute!r}",
            hint="Give algorithm=CLASS, or its name, such as 'PPO' or 'sb3_contrib:TQC'.",
        )
    return found


def _home(path: Path) -> str:
    """Return where the algorithm of a file is, as its fields tell: it does not name it."""
    try:
        with zipfile.ZipFile(path) as archive:
            data: dict[str, Any] = json.loads(archive.read("data"))
        policy: Any = data["policy_class"]
        module = str(policy.get("__module__", "")) if isinstance(policy, dict) else ""
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile, OSError) as error:
        raise unreadable(path, "a stable-baselines3 file", error) from error
    for start, home in _BY_POLICY:
        if module.startswith(start):
            return home
    if (data.get("policy_delay"), data.get("target_noise_clip")) == (1, 0.0):
        return "stable_baselines3:DDPG"  # which is TD3 with these settings
    for field, home in _BY_FIELD:
        if field in data:
            return home
    raise ModelFileError(
        f"{path.name!r} does not tell which algorithm it is of",
        hint="Give algorithm=CLASS, or its name, such as 'PPO'.",
    )


def _statistics(normalize: object) -> Callable[[Any], Any]:
    """Return what normalises observations as a VecNormalize did while the policy was trained."""
    found: Any = normalize
    if isinstance(normalize, str | Path):
        path = Path(normalize)
        log.warning("loading %s runs code that is pickled in it", path.name)
        try:
            with path.open("rb") as file:
                found = pickle.load(file)  # as VecNormalize.load does; it is said above
        except OSError as error:
            raise ModelFileError(f"{str(path)!r} cannot be read: {error.strerror}") from error
        except Exception as error:  # unpickling may raise anything
            raise unreadable(path, "statistics of VecNormalize", error) from error
    call = getattr(found, "normalize_obs", None)
    if not callable(call):
        raise ConfigurationError(
            f"normalize is {normalize!r}",
            hint="Give a VecNormalize, or the path of the file that it was saved to.",
        )
    return cast("Callable[[Any], Any]", call)


def _same(mine: Space, found: Space) -> bool:
    """Tell whether a policy for one space can be used with another: bounds do not matter."""
    match mine, found:
        case (Dict(), Dict()):
            return set(mine) == set(found) and all(_same(mine[key], found[key]) for key in mine)
        case (Tuple(), Tuple()):
            return len(mine) == len(found) and all(map(_same, mine, found))
        case (Discrete(), Discrete()):
            return [mine.n, mine.start] == [found.n, found.start]
        case (MultiDiscrete(), MultiDiscrete()):
            return bool(np.array_equal(mine.nvec, found.nvec))
        case _:
            return mine.kind == found.kind and list(mine.shape) == list(found.shape)


def _moved(mine: Space, found: Space) -> bool:
    """Tell whether the policy takes images with the channels first, which are last elsewhere.

    The library itself turns these round before it predicts.
    """
    if isinstance(mine, Dict) and isinstance(found, Dict):
        return set(mine) == set(found) and all(
            _same(mine[key], found[key]) or _moved(mine[key], found[key]) for key in mine
        )
    if not (isinstance(mine, Box) and isinstance(found, Box) and len(found.shape) == 3):
        return False
    high, wide, channels = found.shape
    return list(mine.shape) == [channels, high, wide]
