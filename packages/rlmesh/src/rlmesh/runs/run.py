"""`rlmesh.run`: evaluate a model on environments over whole episodes."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import SupportsFloat, SupportsIndex, cast

from rlcore import ConfigurationError, RunFailed, RunInterrupted

from rlmesh.runs.evaluation import Evaluation
from rlmesh.runs.grading import Criterion, TaskName
from rlmesh.runs.hooks import RunHooks
from rlmesh.runs.interrupts import Interrupts
from rlmesh.runs.opened import Opened, check_binding
from rlmesh.runs.progress import ProgressCallback
from rlmesh.runs.provenance import machine, package_versions
from rlmesh.runs.results import EpisodeResult, RunResult
from rlmesh.runs.settings import EpisodeArguments, RunArguments, Settings, StopRule, settings_of
from rlmesh.runs.views import ViewHooks, open_view


def run(
    model: object,
    env: object,
    *,
    seeds: Iterable[SupportsIndex] | None = None,
    episodes: int | None = None,
    max_episodes: int | None = None,
    seed: int = 0,
    max_episode_steps: int | None = None,
    max_episode_seconds: float | None = None,
    step_timeout_seconds: float | None = None,
    episode_timeout_seconds: float | None = None,
    run_timeout_seconds: float | None = None,
    predict_timeout_seconds: float | None = None,
    success: Criterion | None = None,
    success_threshold: SupportsFloat | None = None,
    task: TaskName | None = None,
    max_failures: int | None = None,
    retries: int = 0,
    stop_when: StopRule | None = None,
    hooks: RunHooks | Sequence[RunHooks] | None = None,
    on_episode: Callable[[EpisodeResult], object] | None = None,
    progress: bool | ProgressCallback | None = None,
    journal: str | os.PathLike[str] | None = None,
    instruction: str | None = None,
    execution_horizon: int = 1,
    prefetch_lead: int = 0,
    num_workers: int | None = None,
    close_env: bool = False,
    trust_entrypoints: bool | None = None,
    view: object = None,
    workflow_edition: str | None = None,
    trial_index_base: int = 0,
) -> RunResult:
    """Play whole episodes and return what happened, one typed outcome for each.

    A failure of the environment or of the connection costs the episode its score, never more:
    the run goes on with the next one, and re-dials or re-makes what it opened itself. Where an
    environment that was given fails ten times in a row, the run ends (`RunFailed`). The result
    is the same whether one environment plays or many do: the same seeds, the same episodes, in
    the order of their index.

    Args:
        model: a `Model`, a `Model` subclass (made here and closed at the end), a `RemoteModel`, or
            `RANDOM_SAMPLE`.
        env: an environment object, called in this process; a handle such as `RemoteEnv`; an
            address such as `tcp://127.0.0.1:50051` or `rleaas://NAME@3`; what makes an environment,
            or the name of that (`CartPole-v1`, `module:attribute`); something that has an
            `address`; what steps many lanes at once, local or remote; or a list of any of these,
            which play at the same time.
        seeds: one seed for each episode; of an endless iterator the first `episodes`.
        episodes: how many episodes; one when neither this nor `seeds` is given.
        max_episodes: another name of `episodes`.
        seed: without `seeds`, episode i gets the seed `seed + i`.
        max_episode_steps: cut an episode off after so many steps, at the latest after 100 000.
        max_episode_seconds: cut an episode off after so many seconds. This is looked at between
            steps, and the episode keeps its reward.
        step_timeout_seconds: how long one call of an environment may take, a step or a reset.
            The episode then ends without a score (`timeout`), and what hangs is left and made
            or dialled anew, or ends the run where it was given as an object. Calls in this process
            are made on a thread of their own then, which costs some 25 us of CPU a step, and a
            multiple of that by the clock where all cores are busy. Without it nothing bounds a
            call in this process: a vector environment of gymnasium's, for instance, waits without
            end for a process of its own that died.
        episode_timeout_seconds: likewise for all calls of an episode together, and its predictions,
            which are then made on another thread too. A model that still predicts five seconds
            later ends the run.
        run_timeout_seconds: how long the run may take, calls and predictions included: its result
            so far is returned, `stopped` says why, and episodes that were being played are
            `cancelled`.
        predict_timeout_seconds: how long a prediction may take. A model of this process that takes
            longer ends the run: its thread cannot be used any more. A served one costs its episode
            the score (`timeout`), and the next episode asks it again.
        success: decides whether an episode succeeded: a function of its result, or a key of its
            last info; by default the last info says so in `is_success`, `success` or
            `task_success`.
        success_threshold: an episode succeeds when its reward reaches this.
        task: the group that an episode is counted in: a function of its result, or a key of its
            last info.
        max_failures: stop when more episodes than this ended without a score.
        retries: how often an episode without a score is tried again, with its seed.
        stop_when: asked after every episode, in order, with the result up to there; when it says
            True, that is what is returned.
        hooks: observers of episodes and steps; several in a list. They are called one at a time.
        on_episode: called with each result, as it comes.
        progress: True or False for a line on stderr, a function for calls; by default a line
            when stderr is a terminal.
        journal: a file that each result is written to at once. The same call continues an
            interrupted run from it, and plays every episode again that has no score.
        instruction: the task in words, for models whose spec asks for one.
        execution_horizon: how many actions of each predicted chunk are used.
        prefetch_lead: predict the next chunk while so many actions of this one are left.
        num_workers: make an environment in each of so many processes, or dial an address so many
            times, and play on all of them at once. The model stays in this process.
        close_env: also close environments that were given, and shut down a server that was given
            by its address, where it allows that.
        trust_entrypoints: whether adapters may import code that an environment names; nothing
            does so yet.
        view: watch live: True or `terminal`, `http`, `both`, or a `View`. Who watches can skip
            an episode, which is then truncated, and end the run, which then returns its result.
        workflow_edition: the edition that the caller was written for, told when dialling.
        trial_index_base: the trial number of the first episode, sent to environments that
            declare the reset option `trial_index`.

    Raises:
        RunFailed: the run could not go on; `partial` holds the valid result so far.
        RunInterrupted: Ctrl-C; a `KeyboardInterrupt` whose `partial` holds the result so far.
        ConfigurationError: an argument is wrong.
        IdentityError: the environment is not, or no longer, the registered one.
        TransportError: nothing answers at the address.
        JournalError: the journal belongs to another run, or cannot be written.

    What a model or a hook raises comes out as it is, with the result so far as its `partial`.
    """
    given = dict(locals())
    del given["model"], given["env"]
    return play(model, env, cast("RunArguments", given))


def play(
    model: object,
    env: object,
    arguments: RunArguments,
    begun: Callable[[Evaluation], object] = lambda evaluation: None,
) -> RunResult:
    """Do what `run` does.

    Args:
        model: as `run` takes it.
        env: as `run` takes it.
        arguments: those of `run`.
        begun: called when everything is open, before the first episode.

    Raises:
        Exception: as `run`.
    """
    about = about_episodes(arguments)
    settings = settings_of(about)
    check_binding(arguments)
    view = open_view(arguments.get("view"), episodes=len(settings.planned))
    if view is not None and view.takes_terminal and arguments.get("progress") is None:
        settings = replace(settings, watcher=None)  # the line would be drawn over
    if not settings.planned:
        return RunResult(
            asked=0,
            package_versions=package_versions(),
            machine=machine(),
            settings=settings.shaping,
        )
    with Interrupts():
        return _played(model, env, arguments, settings, view, begun)


def _played(
    model: object,
    env: object,
    arguments: RunArguments,
    settings: Settings,
    view: ViewHooks | None,
    begun: Callable[[Evaluation], object],
) -> RunResult:
    close_env = arguments.get("close_env", False)
    shut = None if view is None else view.close
    opened = Opened(model, env, arguments)
    try:
        evaluation = Evaluation(
            opened.policy, opened.seats, settings, horizon=opened.shaping, view=view
        )
        begun(evaluation)
        result = evaluation.play()
    except BaseException as error:
        opened.close_after(error, close_env=close_env, first=shut)
        raise
    try:
        opened.close(close_env=close_env, first=shut)
    except KeyboardInterrupt as error:
        raise RunInterrupted("interrupted while closing", partial=result) from error
    except Exception as error:
        message = f"every episode was played, but closing failed: {error}"
        raise RunFailed(message, partial=result) from error
    return result


def about_episodes(arguments: RunArguments) -> EpisodeArguments:
    """Return the arguments that a session's own `run` takes as well.

    Raises:
        ConfigurationError: there is no argument of that name.
    """
    known, own = RunArguments.__optional_keys__, EpisodeArguments.__optional_keys__
    for name in arguments:
        if name not in known:
            raise ConfigurationError(f"a run has no argument {name!r}")
    found = {name: value for name, value in arguments.items() if name in own}
    return cast("EpisodeArguments", found)
