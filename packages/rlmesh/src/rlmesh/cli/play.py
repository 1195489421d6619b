"""`rlmesh run MODEL ENV`: evaluate a model from the command line."""

import argparse
import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rlcore import ConfigurationError, Error, RunFailed, RunInterrupted
from rlcore.printable import printable, printable_lines

from rlmesh.cli.drawing import drawing_arguments
from rlmesh.cli.gate import FAILED, Gate
from rlmesh.cli.look import AddParser
from rlmesh.cli.run_options import EPILOG, STDOUT, add_options
from rlmesh.cli.run_options import seeds_in as seeds_in

if TYPE_CHECKING:
    from rlmesh.runs.hooks import RunHooks
    from rlmesh.runs.results import RunResult

_LOCAL_SCHEMES = ("gym://", "python://")
_MODEL_SCHEMES = ("tcp://", "unix://")
_HOST_AND_PORT = re.compile(r"^\[?[\w.:-]+\]?:\d+$")


def add_run(add: AddParser) -> None:
    """Add `rlmesh run`."""
    parser = add(
        "run",
        help="evaluate a model on an environment",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    parser.set_defaults(command=run_command)


def run_command(options: argparse.Namespace) -> int:
    """Run, print the result, and return how it ended; see `EPILOG`."""
    from rlmesh.protocol.faults import text_of
    from rlmesh.runs.results import RunResult as Result

    gate = Gate.of(options)
    for path, option in _files(options):
        check_writable(path, option)
    try:
        with _recording(options) as hooks:
            result = _run(options, hooks)
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
    code, said = gate.judge(result)
    if said and options.json != STDOUT:
        print("\n".join(map(printable, said)))
    return FAILED if result.stopped and code == 0 else code


def _run(options: argparse.Namespace, hooks: "RunHooks | None") -> "RunResult":
    from rlmesh.runs.run import run

    env = env_from(options.env, drawn=bool(options.view or options.record))
    if isinstance(env, str):
        if options.wait:
            _wait_for(env, options)
        if options.tls is not None:
            env = _trusted(env, options)
    elif options.tls is not None:
        raise ConfigurationError(f"--tls is for addresses, and {options.env!r} is none")
    return run(
        model_from(options.model, native=options.native, tls=options.tls),
        env,
        seeds=options.seeds,
        episodes=options.episodes,
        seed=options.seed,
        max_episode_steps=options.max_steps,
        step_timeout_seconds=options.step_timeout,
        episode_timeout_seconds=options.episode_timeout,
        run_timeout_seconds=options.run_timeout,
        predict_timeout_seconds=options.predict_timeout,
        success=options.success_key,
        success_threshold=options.success_threshold,
        task=options.task_key,
        max_failures=options.max_failures,
        retries=options.retries,
        hooks=hooks,
        journal=options.journal,
        instruction=options.instruction,
        execution_horizon=options.execution_horizon,
        # A list of dialled environments has its workers already.
        num_workers=None if isinstance(env, list) else options.num_workers,
        view=options.view,
    )


def model_from(source: str, *, native: bool, tls: str | None = None) -> object:
    """Return the model that a command line names; what is no Model yet is wrapped.

    Raises:
        ConfigurationError: there is no such thing.
    """
    if source.startswith(_MODEL_SCHEMES) or _HOST_AND_PORT.match(source):
        from rlmesh.client.remote_model import RemoteModel

        return RemoteModel(source, tls=tls)
    from rlmesh.models.loading import model_from_text
    from rlmesh.server.sources import look_here

    look_here()
    return model_from_text(source, native=native)


def is_address(source: str) -> bool:
    """Return whether a text is where something is served, and not what makes an environment."""
    if "://" in source:
        return not source.startswith(_LOCAL_SCHEMES)
    return bool(_HOST_AND_PORT.match(source))


def env_from(source: str, *, drawn: bool = False) -> object:
    """Return what `rlmesh.run` takes for an environment that a command line names.

    Args:
        source: an address, or what `rlmesh.server.sources.load_factory` takes.
        drawn: whether somebody wants to see it; gymnasium's are made to draw, where they can.

    Raises:
        ConfigurationError: it is no address, and names nothing either.
    """
    if is_address(source):
        return source
    from rlmesh.server.sources import load_factory, look_here

    look_here()
    return load_factory(source, drawing_arguments(source) if drawn else None)


class Dial:
    """Makes a handle of an address, with the trust that the command line names."""

    def __init__(self, address: str, tls: str) -> None:
        self._address = address
        self._tls = tls

    def __call__(self) -> object:
        """Dial, and return a handle of one environment or of many."""
        from rlmesh.client.dialling import MANY_LANES
        from rlmesh.numpy import RemoteEnv, RemoteVectorEnv

        try:
            return RemoteEnv(self._address, tls=self._tls)
        except ConfigurationError as error:
            if error.code != MANY_LANES:
                raise
            return RemoteVectorEnv(self._address, tls=self._tls)


def _trusted(address: str, options: argparse.Namespace) -> object:
    workers = 1 if options.num_workers is None else options.num_workers
    if workers < 1:
        raise ConfigurationError(f"num_workers is {workers}", hint="give at least 1")
    return [Dial(address, options.tls) for _ in range(workers)]


def _wait_for(address: str, options: argparse.Namespace) -> None:
    from rlmesh.client.visit import Visit

    Visit(address, wait_for_server_seconds=options.wait, tls=options.tls).close()


@contextmanager
def _recording(options: argparse.Namespace) -> "Generator[RunHooks | None]":
    """Hooks that record, and the bundle written at the end, also of a run that failed."""
    if options.record is None:
        yield None
        return
    from rlmesh.recorder import Recorder

    with Recorder() as recorder:
        try:
            yield recorder.capture(model=options.model, env=options.env, source=options.env)
        finally:
            # Also where the run failed: what was recorded until then is what one looks at.
            recorder.export(options.record)


def _files(options: argparse.Namespace) -> Iterator[tuple[Path, str]]:
    if options.output is not None:
        yield options.output, "--output"
    if options.json not in (None, STDOUT):
        yield Path(options.json), "--json"


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
    if options.json == STDOUT:
        print(result.to_json())
    else:
        _print(result)
    # Last, so that a full disk costs no one the result that is on the screen.
    for path, _ in _files(options):
        result.save(path)


def _print(result: "RunResult") -> None:
    for episode in result.episodes:
        reward = "" if episode.reward is None else f"  reward {episode.reward:.2f}"
        error = "" if episode.error is None else f"  {printable(episode.error)}"
        line = f"episode {episode.index}  seed {episode.seed}  {episode.outcome.value}"
        print(f"{line}  {episode.steps} steps{reward}{error}")
    print(printable_lines(result))
