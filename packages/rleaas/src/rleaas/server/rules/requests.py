"""What a request for work means, and which requests this build refuses by name."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rlcore import ConfigurationError

from rleaas.training.config import TrainingConfig, validate_training_config

DEFAULT_EPISODES = 20
_SEED_LIMIT = 2**32

_NOT_IN_TRAINING = {
    "verifier_conditions": "verifiers that a request defines are",
    "dataset_url": "training from a dataset is",
    "actions": "a restricted action list is",
}


def require_trainable(request: Mapping[str, object]) -> None:
    """Refuse what training cannot do yet, instead of leaving it out silently.

    Raises:
        ConfigurationError: naming the field, with code `not_available`.
    """
    _require_absent(request, _NOT_IN_TRAINING)


def training_config(
    algorithm: str,
    num_episodes: int | None,
    max_steps: int | None,
    config: Mapping[str, object] | None,
    seed: int | None,
    verifier_config: Mapping[str, object] | None = None,
) -> TrainingConfig:
    """The checked request; what stands beside the config must not contradict what is inside.

    Raises:
        ConfigurationError: the first thing that is wrong, by name.
    """
    given = dict(config or {})
    for name, outside in (("seed", seed), ("verifier_config", verifier_config)):
        inside = given.get(name)
        if outside is None:
            continue
        if inside is not None and inside != outside:
            raise ConfigurationError(
                f"{name} {outside!r} contradicts config.{name} {inside!r}",
                code="invalid_training_config",
                hint=f"Give {name} once",
            )
        given[name] = outside
    return validate_training_config(algorithm, num_episodes, max_steps, given)


def evaluation_seeds(
    seeds: Sequence[int] | None, episodes: int | None, base_seed: int
) -> list[int]:
    """One seed for each episode: those listed, or as many as asked for, counted from the base.

    Raises:
        ConfigurationError: a seed is listed twice, or both forms are given and disagree.
    """
    if seeds is None:
        last = base_seed + (episodes or DEFAULT_EPISODES)
        if last > _SEED_LIMIT:
            raise ConfigurationError(
                f"base_seed {base_seed} leaves no room below 2**32 for {last - base_seed} seeds",
                code="invalid_evaluation",
                hint="Use a smaller base_seed",
            )
        return list(range(base_seed, last))
    if episodes is not None and episodes != len(seeds):
        raise ConfigurationError(
            f"{len(seeds)} seeds and episodes={episodes} contradict each other",
            code="invalid_evaluation",
            hint="Give one of the two",
        )
    repeated = [seed for seed, times in Counter(seeds).items() if times > 1]
    if repeated:
        raise ConfigurationError(
            f"seed {repeated[0]} is listed more than once",
            code="invalid_evaluation",
            hint="The same seed gives the same episode; list each once",
        )
    return list(seeds)


def _require_absent(request: Mapping[str, object], unavailable: Mapping[str, str]) -> None:
    for field, what in unavailable.items():
        if request.get(field):
            raise ConfigurationError(
                f"{field}: {what} not built yet",
                code="not_available",
                hint=f"Leave {field!r} out",
            )
