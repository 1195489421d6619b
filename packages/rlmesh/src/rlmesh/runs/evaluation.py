"""One run: who plays, what ends it, and the result it leaves."""

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING

from rlcore import RunFailed, RunInterrupted

from rlmesh.backends.content import Content, content_of
from rlmesh.backends.frameworks import FrameworkName
from rlmesh.models.policy import Policy
from rlmesh.runs.announcer import Announcer
from rlmesh.runs.frames import FrameSource, frame_sources_of
from rlmesh.runs.journal import Journal
from rlmesh.runs.journal_header import Header
from rlmesh.runs.lane_player import LanePlayer
from rlmesh.runs.left import known_again, left_as
from rlmesh.runs.match import Match
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.player import Player
from rlmesh.runs.predictor import Predictor
from rlmesh.runs.progress import Tracker
from rlmesh.runs.provenance import Plain, machine, package_versions
from rlmesh.runs.results import EpisodeResult, RunResult
from rlmesh.runs.scoreboard import Scoreboard
from rlmesh.runs.seat import Seat
from rlmesh.runs.settings import Settings
from rlmesh.runs.signals import CannotGoOn, Enough
from rlmesh.runs.telemetry import Telemetry, TelemetryRow
from rlmesh.runs.views import ViewHooks

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract

GRACE_SECONDS = 2.0
"""How long a run that ends early waits for calls that environments are still in."""

CANCELLED = "cancelled"


class Evaluation:
    """Plays the episodes of a run on some seats, and says what became of them; for one use.

    Args:
        policy: the policy.
        seats: the environments, all of one kind.
        settings: what was asked for.
        horizon: what else shapes the episodes, as plain values.
        view: the viewer.
    """

    def __init__(
        self,
        policy: Policy,
        seats: Sequence[Seat],
        settings: Settings,
        *,
        horizon: dict[str, Plain],
        view: ViewHooks | None = None,
    ) -> None:
        self._policy = policy
        self._seats = list(seats)
        self._settings = settings
        self._shaping = {**settings.shaping, **horizon}
        self._view = view
        self._identity = seats[0].identity
        self._started_at = datetime.now(UTC)
        self._versions = package_versions()
        self._players: list[Player | LanePlayer] = []
        self._advisories = list(seats[0].target.advisories)
        self._failures: list[BaseException] = []
        self._board: Scoreboard | None = None
        self._cancelled = False

    @property
    def contract(self) -> "EnvContract | None":
        """The environment's contract, where its spaces can be described."""
        return self._seats[0].target.env.env_contract

    @property
    def num_envs(self) -> int:
        """How many episodes can be open at once."""
        return sum(seat.target.lanes or 1 for seat in self._seats)

    @property
    def environments(self) -> tuple[object, ...]:
        """What is stepped: local environments as a run has them, or handles to remote ones."""
        return tuple(seat.target.env for seat in self._seats)

    def frame_sources(self) -> tuple[FrameSource, ...]:
        """What can be looked at while the run goes on."""
        return frame_sources(self._seats)

    def cancel(self) -> None:
        """End the run soon, with its result so far; from any thread, also before it plays."""
        self._cancelled = True
        if self._board is not None:
            self._board.halt()

    def hang_up(self) -> None:
        """Have calls that wait for a server fail at once; from any thread."""
        for seat in self._seats:
            seat.hang_up()

    def so_far(self, reason: str) -> RunResult:
        """Return the result up to now, as that of a run which ends for a reason."""
        return self._cut_short(reason, None)

    def play(self) -> RunResult:
        """Play every planned episode.

        Raises:
            RunFailed: the run could not go on.
            RunInterrupted: Ctrl-C.
            JournalError: the journal is another run's, or cannot be written.
        """
        with ExitStack() as opened:
            journal = self._open_journal()
            if journal is None:
                return self._play(journal, opened)
            opened.callback(journal.close)
            begun = journal.header.contents
            opened.callback(lambda: left_as(journal.path, begun, self._contents()))
            return self._play(journal, opened)

    def _play(self, journal: Journal | None, opened: ExitStack) -> RunResult:
        settings = self._settings
        announcer = self._announcer(journal)
        try:
            finished = {} if journal is None else dict(journal.finished)
            # The board asks the rules about what is finished already.
            self._board = board = Scoreboard(
                settings.planned,
                finished,
                max_failures=settings.max_failures,
                enough=None if settings.stop_when is None else self._is_enough,
            )
            if self._cancelled:
                board.halt()
            announcer.resumed(finished.values())
            announcer.run_start(self)
            self._gather(board, announcer, opened)
            self._play_all(board)
            if board.verdict is not None:
                raise board.verdict
            if self._cancelled and not board.is_done:
                raise Enough(CANCELLED)
            result = self._result(self._results(), stopped=None)
        except Enough as stop:
            result = self._cut_short(stop.reason, None)
        except CannotGoOn as stop:
            partial = self._cut_short(
                stop.reason, stop.cause or stop, announcer, news=stop.everywhere
            )
            message = f"the run stopped after {partial.num_episodes} episodes: {stop.reason}"
            hint = "the error's 'partial' holds what was finished"
            raise RunFailed(message, partial=partial, hint=hint) from stop.cause
        except KeyboardInterrupt as error:
            partial = self._cut_short("interrupted", error, announcer)
            message = f"interrupted: {partial.coverage}"
            raise RunInterrupted(message, partial=partial) from error
        except BaseException as error:
            # The model's or a hook's own exception keeps its type and takes the result along.
            reason = f"{type(error).__name__}: {error}"
            error.__dict__["partial"] = self._cut_short(reason, error, announcer)
            raise
        self._tell_end(announcer, result)
        return result

    def _tell_end(self, announcer: Announcer, result: RunResult) -> None:
        """Tell that the run ended as it should; what a hook raises takes the result along."""
        try:
            announcer.run_end(result, None)
        except KeyboardInterrupt as error:
            raise RunInterrupted("interrupted in on_run_end", partial=result) from error
        except BaseException as error:
            error.__dict__["partial"] = result
            raise

    def _announcer(self, journal: Journal | None) -> Announcer:
        settings = self._settings
        hooks = settings.hooks if self._view is None else (*settings.hooks, self._view)
        return Announcer(
            hooks,
            on_episode=settings.on_episode,
            tracker=Tracker(len(settings.planned), settings.watcher),
            journal=journal,
        )

    def _gather(self, board: Scoreboard, announcer: Announcer, opened: ExitStack) -> None:
        settings = self._settings
        several = len(self._seats) > 1
        if several:
            announcer.expect_threads()
        predictor = Predictor(
            self._policy,
            seconds=settings.predict_seconds,
            shared=several,
            bounded=settings.run_seconds is not None or settings.limits.timeout is not None,
        )
        match = Match(
            board,
            predictor,
            announcer,
            grader=settings.grader,
            limits=settings.limits,
            retries=settings.retries,
            run_seconds=settings.run_seconds,
            players=len(self._seats),
            control=None if self._view is None else self._view.control,
        )
        opened.callback(predictor.close)
        predictor.bind(self._seats[0])
        place = 0
        for seat in self._seats:
            if match.is_bounded or settings.step_seconds is not None:
                seat.bound(settings.step_seconds)
            lanes = seat.target.lanes
            if lanes is None:
                self._players.append(Player(match, seat, place))
            else:
                framework: FrameworkName = getattr(seat.target.env, "framework", "native")
                self._players.append(LanePlayer(match, seat, place, framework))
            place += lanes or 1

    def _play_all(self, board: Scoreboard) -> None:
        if len(self._players) == 1:
            self._players[0].play()
            return
        threads = [
            threading.Thread(
                target=self._play_one,
                args=(player, board),
                name=f"rlmesh-run-{number}",
                daemon=True,
            )
            for number, player in enumerate(self._players)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            # Where a Ctrl-C came, they are still playing.
            board.halt()
            self._wait_for(threads)
        fatal = [error for error in self._failures if not isinstance(error, CannotGoOn)]
        if fatal:
            raise fatal[0]
        if self._failures and not board.is_done and board.verdict is None:
            raise self._failures[-1]

    def _play_one(self, player: Player | LanePlayer, board: Scoreboard) -> None:
        try:
            player.play()
        except CannotGoOn as stop:
            # The others play what is left, unless that was the model's fault.
            self._failures.append(stop)
            if stop.everywhere:
                board.halt()
        except BaseException as error:
            self._failures.append(error)
            board.halt()

    def _wait_for(self, threads: Sequence[threading.Thread]) -> None:
        until = monotonic() + GRACE_SECONDS
        hurried = False
        for thread in threads:
            while thread.is_alive() and monotonic() < until:
                try:
                    thread.join(0.2 if not hurried else until - monotonic())
                    if thread.is_alive() and not hurried:
                        hurried = True
                        self.hang_up()
                except KeyboardInterrupt:
                    until = monotonic()
        left = sum(thread.is_alive() for thread in threads)
        if left:
            self._advisories.append(
                f"{left} environments were still in a call when the run ended; their threads end "
                "with it, or with the process"
            )

    def _results(self) -> tuple[EpisodeResult, ...]:
        return () if self._board is None else self._board.results()

    def _is_enough(self, episodes: Sequence[EpisodeResult]) -> bool:
        rule = self._settings.stop_when
        if rule is None:
            return False
        return bool(rule(self._result(tuple(episodes), stopped=None, measured=False)))

    def _cut_short(
        self,
        reason: str,
        error: BaseException | None,
        announcer: Announcer | None = None,
        *,
        news: bool = True,
    ) -> RunResult:
        episodes = list(self._results())
        if self._board is None or self._board.verdict is None:
            cause = error or Enough(reason)
            episodes += [
                playing.failed(Outcome.CANCELLED, cause)
                for player in self._players
                for playing in player.playing
            ]
        episodes.sort(key=lambda episode: episode.index)
        result = self._result(tuple(episodes), stopped=reason)
        if announcer is not None and error is not None:
            if news:
                try:
                    announcer.error(error)
                except BaseException as second:  # what ended the run is what is raised
                    what = f"{type(second).__name__}: {second}"
                    error.add_note(f"on_error failed as well: {what}")
            announcer.run_end(result, error)
        return result

    def _measured(self) -> tuple[TelemetryRow, ...]:
        telemetry = Telemetry()
        for player in self._players:
            telemetry.merge(player.telemetry)
        return telemetry.rows()

    def _told(self) -> tuple[str, ...]:
        told = [said for player in self._players for said in player.advisories]
        return tuple(dict.fromkeys([*self._advisories, *told]))

    def _result(
        self, episodes: tuple[EpisodeResult, ...], *, stopped: str | None, measured: bool = True
    ) -> RunResult:
        return RunResult(
            episodes=episodes,
            telemetry=self._measured() if measured else (),
            advisories=self._told(),
            environment=self._identity,
            model=self._policy.name,
            model_digest=self._policy.digest,
            asked=len(self._settings.planned),
            stopped=stopped,
            started_at=self._started_at,
            finished_at=datetime.now(UTC),
            package_versions=self._versions,
            machine=machine(),
            settings=self._shaping,
        )

    def _contents(self) -> dict[str, Content]:
        grader = self._settings.grader
        found: dict[str, Content] = {}
        if self._policy.content is not None:
            found["model"] = self._policy.content
        for name, tell in self._seats[0].target.contents.items():
            found[f"environment.{name}"] = tell()
        for name, rule in (("success", grader.criterion), ("task", grader.task)):
            if rule is not None:
                found[name] = content_of(rule)
        return found

    def _open_journal(self) -> Journal | None:
        path = self._settings.journal
        if path is None:
            return None
        header = Header(
            model=self._policy.name,
            model_digest=self._policy.digest,
            environment=self._identity,
            seeds=tuple(plan.seed for plan in self._settings.planned),
            settings=self._shaping,
            package_versions=self._versions,
            contents=known_again(path, self._contents()),
        )
        journal = Journal.open(path, header)
        self._advisories += journal.advisories
        return journal


def frame_sources(seats: Sequence[Seat]) -> tuple[FrameSource, ...]:
    """Return what can be looked at in some environments, each source under a name of its own."""
    first = seats[0].target
    if len(seats) == 1:
        return frame_sources_of(first.env, first.env.env_contract, num_envs=first.lanes or 1)
    found: list[FrameSource] = []
    place = 0
    for seat in seats:
        env, lanes = seat.target.env, seat.target.lanes
        for source in frame_sources_of(env, env.env_contract, num_envs=lanes or 1):
            if lanes is None:
                label = f"{source.label}[{place}]"
                found.append(replace(source, label=label, lane=place))
            elif source.lane is not None:
                label = source.label.replace(f"[{source.lane}]", f"[{place + source.lane}]")
                found.append(replace(source, label=label, lane=place + source.lane))
        place += lanes or 1
    return tuple(found)
