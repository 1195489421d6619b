"""`rlmesh run MODEL ENV`: evaluate a model from the command line."""

import argparse
import importlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from rlcore import ConfigurationError, Error, RunFailed, RunInterrupted
from rlcore.printable import printable, printable_lines

from rlmesh.cli.look import AddParser, add_wait

if TYPE_CHECKING:
    from rlmesh.runs.results import RunResult

_LOCAL_SCHEMES = ("gym://", "python://")
MOST_SEEDS = 1_000_000
_HOST_AND_PORT = re.compile(r"^\[?[\w.:-]+\]?:\d+$")


def add_run(add: AddParser) -> None:
    """Add `rlmesh run`."""
    parser = add("run", help="evaluate a model on an environment")
    parser.add_argument(
        "model", help="'random', or MODULE:ATTRIBUTE of a Model, policy or function"
    )
    parser.add_argument(
        "env", help="an address (tcp://…, rleaas://NAME@3), a gymnasium id, or MODULE:ATTRIBUTE"
    )
    parser.add_argument("--episodes", type=int, help="how many episodes (1)")
    parser.add_argument("--seeds", type=seeds_in, help="FIRST:LAST (LAST excluded), or 1,2,3")
    parser.add_argument("--seed", type=int, default=0, help="without --seeds, the first seed (0)")
    parser.add_argument("--max-steps", type=int, help="cut episodes off after so many steps")
    parser.add_argument("--success-threshold", type=float, help="reward that counts as success")
    parser.add_argument("--max-failures", type=int, help="stop after more failed episodes")
    parser.add_argument("--native", action="store_true", help="give functions rlmesh.Tensor")
    parser.add_argument("--json", action="store_true", help="print the whole result as JSON")
    parser.add_argument("--output", type=Path, help="also write the result as JSON to this file")
    add_wait(parser)
    parser.set_defaults(command=run_command)


def run_command(options: argparse.Namespace) -> int:
    """Run, print the result, and return 1 when no episode has a score."""
    from rlmesh.protocol.faults import text_of
    from rlmesh.runs.results import RunResult as Result
    from rlmesh.runs.run import run

    if options.output is not None:
        check_writable(options.output)
    model, env = model_from(options.model, native=options.native), env_from(options.env)
    if options.wait and isinstance(env, str):
        _wait_for(env, options.wait)
    try:
        result = run(
            model,
            env,
            seeds=options.seeds,
            episodes=options.episodes,
            seed=options.seed,
            max_episode_steps=options.max_steps,
            success_threshold=options.success_threshold,
            max_failures=options.max_failures,
        )
    except (Exception, RunInterrupted) as error:
        partial: object = getattr(error, "partial", None)
        if isinstance(partial, Result):
            _report(partial, options)
        if isinstance(error, Error | RunInterrupted):
            raise
        # What a model raises is not ours, and a command has no use for its traceback.
        message = f"running {options.model!r} raised {type(error).__name__}: {text_of(error)}"
        raise RunFailed(message, partial=partial) from error
    _report(result, options)
    return 0 if result.coverage.scored == result.coverage.asked else 1


def model_from(source: str, *, native: bool) -> object:
    """Return the model that a command line names; what is no Model yet is wrapped.

    Raises:
        ConfigurationError: there is no such module or attribute.
    """
    from rlmesh.models.model import Model, is_model, is_model_class
    from rlmesh.models.numpy_model import Model as NumpyModel
    from rlmesh.models.sentinels import RANDOM_SAMPLE

    if source.lower() in ("random", "random_sample"):
        return RANDOM_SAMPLE
    found = attribute(source)
    if is_model(found) or is_model_class(found):
        return found
    return Model(found) if native else NumpyModel(found)


def is_address(source: str) -> bool:
    """Return whether a text is where something is served, and not what makes an environment."""
    if "://" in source:
        return not source.startswith(_LOCAL_SCHEMES)
    return bool(_HOST_AND_PORT.match(source))


def env_from(source: str) -> object:
    """Return what `rlmesh.run` takes for an environment that a command line names.

    Raises:
        ConfigurationError: it is no address, and names nothing either.
    """
    if is_address(source):
        return source
    from rlmesh.server.sources import load_factory, look_here

    look_here()
    return load_factory(source)


def attribute(source: str) -> object:
    """Return what MODULE:ATTRIBUTE names; modules beside the command count as well.

    Raises:
        ConfigurationError: it is not of that form, there is no such module or attribute, or the
            module raises.
    """
    module_name, colon, path = source.partition(":")
    if not (colon and module_name and path):
        raise ConfigurationError(f"{source!r} is not MODULE:ATTRIBUTE")
    from rlmesh.protocol.faults import text_of
    from rlmesh.server.sources import look_here

    look_here()
    try:
        found: object = importlib.import_module(module_name)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"cannot load {source!r}: {error}") from error
    except Exception as error:
        what = f"{type(error).__name__}: {text_of(error)}"
        raise ConfigurationError(f"cannot load {source!r}: it raised {what}") from error
    return found


def _wait_for(address: str, seconds: float) -> None:
    from rlmesh.client.remote_env import RemoteEnv

    RemoteEnv(address, wait_for_server_seconds=seconds).close()


def check_writable(path: Path, option: str = "--output") -> None:
    """Do nothing for a file that can be written.

    Raises:
        ConfigurationError: it cannot.
    """
    if path.is_dir():
        raise unwritable(path, "it is a folder", option)
    if not path.parent.is_dir():
        raise unwritable(path, f"there is no folder {str(path.parent)!r}", option)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise unwritable(path, "permission denied", option)


def unwritable(path: Path, reason: str, option: str = "--output") -> ConfigurationError:
    """Return the error about a file that an option names."""
    return ConfigurationError(f"{option} {str(path)!r} cannot be written: {reason}")


def _report(result: "RunResult", options: argparse.Namespace) -> None:
    if options.json:
        print(result.to_json())
    else:
        _print(result)
    # Last, so that a full disk costs no one the result that is on the screen.
    if options.output is not None:
        try:
            options.output.write_text(result.to_json() + "\n", encoding="utf-8")
        except OSError as error:
            raise unwritable(options.output, error.strerror or str(error)) from error


def _print(result: "RunResult") -> None:
    for episode in result.episodes:
        reward = "" if episode.reward is None else f"  reward {episode.reward:.2f}"
        error = "" if episode.error is None else f"  {printable(episode.error)}"
        line = f"episode {episode.index}  seed {episode.seed}  {episode.outcome.value}"
        print(f"{line}  {episode.steps} steps{reward}{error}")
    print(printable_lines(result))


def seeds_in(text: str) -> list[int]:
    """Return the seeds that an option names: FIRST:LAST, or 1,2,3."""
    try:
        if ":" in text:
            first, last = map(int, text.split(":"))
            if last - first > MOST_SEEDS:
                message = f"{text!r} names {last - first} seeds; {MOST_SEEDS} is the most"
                raise argparse.ArgumentTypeError(message)
            seeds = list(range(first, last))
        else:
            seeds = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is neither FIRST:LAST nor 1,2,3") from error
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text!r} names no seed: LAST is excluded")
    return seeds
