"""The hooks by which a run is recorded."""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar

from rlcore import RecordingError

from rlmesh.recorder import carried
from rlmesh.recorder.cameras import Cameras
from rlmesh.recorder.hud import hud_text
from rlmesh.recorder.open_episode import OpenEpisode
from rlmesh.recorder.options import CaptureOptions, why_no_video
from rlmesh.recorder.recipe import recipe_of
from rlmesh.recorder.recording import Recording
from rlmesh.runs.frames import RENDER
from rlmesh.runs.hooks import RunContext, RunHooks, StepEvent
from rlmesh.runs.results import EpisodeResult, RunResult

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract

T = TypeVar("T")


class Capture(RunHooks):
    """Records what a run does into one workload; made by `Recorder.capture`.

    What fails about recording is a warning, and the run goes on, unless the recorder is strict.

    Args:
        recording: what the episodes go into.
        number: of the workload in it.
        options: what is recorded.
        owner: the recorder, which is needed as long as its hooks are.
    """

    def __init__(
        self, recording: Recording, number: int, options: CaptureOptions, owner: object
    ) -> None:
        self._owner = owner
        self._recording = recording
        self._number = number
        self._options = options
        self._cameras: Cameras | None = None
        self._open: dict[int, OpenEpisode] = {}
        self._finished: set[int] = set()
        self._running = False
        self._refused: set[int] = set()

    def on_run_start(self, context: RunContext) -> None:
        """See what there is to film, and make the place for files.

        Raises:
            RecordingError: the hooks are those of another run that goes on, or the recorder is
                closed, or its staging folder holds another recording.
        """
        try:
            self._recording.require_open()
            if self._running:
                raise RecordingError(
                    "these hooks record another run that goes on",
                    hint="Make hooks for each run, with Recorder.capture, or run one by one.",
                )
        except RecordingError:
            # This run's end comes next on this thread; another's is not meant.
            self._refused.add(get_ident())
            raise
        self._running = True
        self._recording.runs += 1
        self._abandon_open()
        self._finished.clear()
        self._recording.start()
        self._recording.broken.clear()
        self._cameras = self._found(context)
        replay = self._options.replay or recipe_of(context)
        details = {"contract": _contract(context.contract), "replay": replay}
        self._recording.worker.put(lambda: self._recording.describe(self._number, details))
        self._recording.relay()

    def on_episode_start(self, *, episode: int, seed: int) -> None:
        """Start an episode; an attempt before it is thrown away."""
        earlier = self._open.pop(episode, None)
        if earlier is not None:
            earlier.abandon()
        self._open[episode] = OpenEpisode(self._recording, self._options)
        self._recording.relay()

    def on_step(self, event: StepEvent) -> None:
        """Record a step."""
        episode = self._open.get(event.episode)
        if episode is None:
            return
        recording = self._recording
        recording.relay()
        episode.total += event.reward
        if episode.lane is None:
            episode.lane = event.lane
        if recording.halted:
            return
        writer = episode.writer
        if writer is not None:
            try:
                writer.add(event, event.next_observation)
            except OSError as error:
                recording.halt(error)
                recording.relay()
                return
        if self._options.video_info_keys and event.info:
            named = carried.named_in(event.info, self._options.video_info_keys)
            episode.carried = episode.carried if named is None else named
        if self._cameras is not None:
            self._film(episode, event, self._cameras)

    def on_episode_end(self, result: EpisodeResult) -> None:
        """Finish an episode's files."""
        self._finished.add(result.index)
        episode = self._open.pop(result.index, None) or OpenEpisode(self._recording, self._options)
        episode.end(self._number, result)
        self._recording.relay()

    def on_run_end(self, result: RunResult) -> None:
        """Keep what is known about the run, and the episodes that it ended early."""
        if get_ident() in self._refused:
            self._refused.remove(get_ident())
            return
        try:
            self._end(result)
        finally:
            self._running = False
            self._recording.runs -= 1

    def _end(self, result: RunResult) -> None:
        for one in result.episodes:
            # Cut off by Ctrl-C, or finished by an earlier process and known from its journal.
            if one.index not in self._finished:
                self.on_episode_end(one)
        self._abandon_open()
        run = {key: value for key, value in result.to_dict().items() if key != "episodes"}
        self._recording.worker.put(lambda: self._recording.describe(self._number, {"run": run}))
        if self._cameras is not None:
            for name in self._cameras.fruitless():
                there = self._cameras.names()
                told = ", ".join(there) or "nothing"
                if name == RENDER and name not in there:
                    told += "; what an environment draws, where it has render_mode='rgb_array'"
                self._recording.warn(f"camera {name!r} gave no picture; this run has {told}")
        self._recording.settle()

    def _film(self, episode: OpenEpisode, event: StepEvent, cameras: Cameras) -> None:
        for camera in cameras.of(event.lane):
            try:
                picture = camera.take(event)
            except Exception as error:  # whatever an environment raises while it draws
                cameras.switch_off(camera.name)
                what = f"{type(error).__name__}: {error}"
                self._recording.warn(f"camera {camera.name!r} is not recorded any more: {what}")
                self._recording.relay()
                continue
            if picture is not None:
                cameras.fruitful.add(camera.name)
                episode.film(camera.name, picture, self._text(episode, event))

    def _text(self, episode: OpenEpisode, event: StepEvent) -> str | None:
        if not self._options.hud:
            return None
        return hud_text(
            episode=event.episode, step=event.step + 1, total=episode.total, seed=event.seed
        )

    def _found(self, context: RunContext) -> Cameras | None:
        if self._options.cameras is not None and not self._options.cameras:
            return None
        session = self._options.session
        cameras = Cameras(context if session is None else session, self._options.cameras)
        if self._options.cameras is None and not cameras.names():
            return None
        why = why_no_video(self._recording.settings.codec)
        if why is not None:
            self._recording.warn(f"no video is recorded: {why}")
            return None
        return cameras

    def _abandon_open(self) -> None:
        for episode in self._open.values():
            episode.abandon()
        self._open.clear()


def _contract(contract: EnvContract | None) -> dict[str, Any] | None:  # Any: JSON
    return None if contract is None else {**contract.to_dict(), "digest": contract.digest}
