"""Videos of any size, of several cameras and lanes, that players can play."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from threading import Event, Thread
from typing import Any

import av
import gymnasium as gym
import numpy as np
import pytest
from rlcore import ConfigurationError, MissingDependencyError
from rlmesh.models.sentinels import RANDOM_SAMPLE
from rlmesh.recorder import Recorder, load
from rlmesh.recorder.fitting import fitted, video_size
from rlmesh.recorder.hud import draw, hud_text
from rlmesh.recorder.video import Video, VideoSettings
from rlmesh.recorder.worker import Worker
from rlmesh.runs.results import RunResult

Played = Callable[..., RunResult]


def frames_of(path: Path) -> list[Any]:  # Any: arrays of uint8
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def facts_of(path: Path) -> tuple[str, int, int, int, Any]:
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        kind = stream.codec_context.codec.canonical_name
        return kind, stream.frames, stream.width, stream.height, stream.time_base


def boxes(content: bytes) -> list[str]:
    """The top-level boxes of an MP4 file, in order (ISO/IEC 14496-12, 4.2)."""
    found: list[str] = []
    at = 0
    while at < len(content):
        size = int.from_bytes(content[at : at + 4], "big")
        found.append(content[at + 4 : at + 8].decode())
        at += size
    return found


def recorded(play: Played, env: Any, target: Path, **options: Any) -> Path:
    settings = {key: options.pop(key) for key in ("codec", "fps", "quality") if key in options}
    run = {key: options.pop(key) for key in ("seeds",) if key in options}
    with Recorder(**settings) as recorder:
        play(env, recorder.capture(model="m", env="e", **options), **run)
        return recorder.export(target)


def films(path: Path, workload: int = 0) -> list[list[Any]]:
    return [list(one.media) for one in load(path).workloads[workload].episodes]


def test_a_frame_is_recorded_after_each_step(play: Played, walk: Any, tmp_path: Path) -> None:
    path = recorded(play, walk(), tmp_path / "b", seeds=[1])

    ((film,),) = films(path)
    assert (film.camera, film.kind, film.format) == ("render", "video", "mp4")
    assert (film.frame_count, film.width, film.height, film.fps) == (5, 64, 48, 30.0)
    assert facts_of(path / film.path) == ("av1", 5, 64, 48, Fraction(1, 30))
    shades = [int(frame[24, 32, 0]) for frame in frames_of(path / film.path)]
    assert shades == pytest.approx([20, 40, 60, 80, 100], abs=4)


@pytest.mark.parametrize("codec", ["av1", "h264"])
def test_the_index_comes_before_the_frames_so_that_browsers_play_at_once(
    codec: Any, play: Played, walk: Any, tmp_path: Path
) -> None:
    path = recorded(play, walk(), tmp_path / "b", codec=codec, fps=12, seeds=[1])

    ((film,),) = films(path)
    order = boxes(film.read())
    assert order.index("moov") < order.index("mdat")
    assert facts_of(path / film.path) == (codec, 5, 64, 48, Fraction(1, 12))


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((49, 65), (48, 64, 1)),
        ((48, 64), (48, 64, 1)),
        ((8, 8), (16, 16, 2)),
        ((5, 7), (20, 28, 4)),
        ((1, 1000), (16, 8000, 8)),
        ((17, 16), (16, 16, 1)),
    ],
)
def test_sizes_become_even_and_large_enough(
    size: tuple[int, int], expected: tuple[int, int, int]
) -> None:
    assert video_size(*size) == expected


@pytest.mark.parametrize("size", [(49, 65), (8, 8), (5, 7), (16, 16), (480, 640), (1, 40)])
def test_pictures_of_any_size_become_a_video(size: tuple[int, int], tmp_path: Path) -> None:
    video = Video(tmp_path / "v.mp4", VideoSettings())
    for shade in (50, 150):
        video.write(np.full((*size, 3), shade, np.uint8))
    video.finish()

    found = frames_of(video.path)
    assert [frame.shape for frame in found] == [(video.height, video.width, 3)] * 2
    assert int(found[1][video.height // 2, video.width // 2, 0]) == pytest.approx(150, abs=6)


def test_a_picture_of_another_size_gets_black_borders(tmp_path: Path) -> None:
    video = Video(tmp_path / "v.mp4", VideoSettings(quality=100))
    video.write(np.full((64, 64, 3), 200, np.uint8))
    video.write(np.full((32, 64, 3), 200, np.uint8))
    video.write(np.full((128, 64, 3), 200, np.uint8))
    video.finish()

    _, wide, tall = frames_of(video.path)
    assert int(wide[32, 32, 0]) > 180
    assert int(wide[4, 32, 0]) < 30
    assert int(tall[32, 32, 0]) > 180
    assert int(tall[32, 4, 0]) < 30


def test_a_picture_that_fits_is_not_copied() -> None:
    picture = np.zeros((48, 64, 3), np.uint8)

    assert fitted(picture, 48, 64, 1) is picture


def test_a_better_quality_makes_a_larger_file(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3)).astype(np.uint8)
    sizes: list[int] = []
    for quality in (10, 60, 95):
        video = Video(tmp_path / f"{quality}.mp4", VideoSettings(quality=quality))
        for _ in range(3):
            video.write(noise)
        video.finish()
        sizes.append(video.path.stat().st_size)

    assert sizes == sorted(set(sizes))


class Rig(gym.Env[Any, Any]):
    """Has a camera in its observation besides what it draws."""

    render_mode = "rgb_array"
    observation_space = gym.spaces.Dict(
        {
            "wrist": gym.spaces.Box(0, 255, (24, 32, 3), np.uint8),
            "joints": gym.spaces.Box(-1, 1, (3,), np.float32),
        }
    )
    action_space = gym.spaces.Discrete(2)

    def __init__(self, draws: bool = True) -> None:
        self.draws = draws

    def _seen(self) -> dict[str, Any]:
        wrist = np.full((24, 32, 3), self.at * 40, np.uint8)
        return {"wrist": wrist, "joints": np.zeros(3, np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at = 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.at += 1
        return self._seen(), 1.0, self.at == 4, False, {}

    def render(self) -> Any:
        if not self.draws:
            raise RuntimeError("no display")
        return np.full((32, 48, 3), 90, np.uint8)


def test_every_camera_has_a_file_of_its_own(play: Played, tmp_path: Path) -> None:
    with Recorder() as recorder:
        play(Rig(), recorder.capture(model="m", env="e"), model=RANDOM_SAMPLE, seeds=[1])
        wrist_only = recorder.capture(model="m", env="e", cameras=["wrist"])
        play(Rig(), wrist_only, model=RANDOM_SAMPLE, seeds=[1])
        none = recorder.capture(model="m", env="e", cameras=[])
        play(Rig(), none, model=RANDOM_SAMPLE, seeds=[1])
        path = recorder.export(tmp_path / "b")

    ((drawn, wrist),) = films(path, 0)
    assert [(one.camera, one.width, one.height) for one in (drawn, wrist)] == [
        ("render", 48, 32),
        ("wrist", 32, 24),
    ]
    shades = [int(frame[12, 16, 0]) for frame in frames_of(path / wrist.path)]
    assert shades == pytest.approx([40, 80, 120, 160], abs=5)
    assert [[one.camera for one in media] for media in films(path, 1)] == [["wrist"]]
    assert films(path, 2) == [[]]


def test_a_camera_that_fails_is_left_out_with_a_warning_and_the_run_goes_on(
    play: Played, tmp_path: Path
) -> None:
    with Recorder() as recorder:
        hooks = recorder.capture(model="m", env="e")
        with pytest.warns(UserWarning, match="camera 'render' is not recorded any more: Runtime"):
            result = play(Rig(draws=False), hooks, model=RANDOM_SAMPLE, seeds=[1, 2])
        path = recorder.export(tmp_path / "b")

    assert result.coverage.scored == 2
    assert [[one.camera for one in media] for media in films(path)] == [["wrist"], ["wrist"]]


def test_a_camera_that_is_not_there_warns_at_the_end_of_the_run(play: Played, walk: Any) -> None:
    with Recorder() as recorder:
        hooks = recorder.capture(model="m", env="e", cameras=["rear"])
        with pytest.warns(UserWarning, match="camera 'rear' gave no picture; this run has render"):
            play(walk(), hooks, seeds=[1])


def test_lanes_of_a_vector_environment_are_filmed_one_by_one(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    vector: Any = gym.vector.SyncVectorEnv(
        [lambda: walk(length=3), lambda: walk(length=6)],
        autoreset_mode=gym.vector.AutoresetMode.DISABLED,
    )
    with Recorder() as recorder:
        result = play(vector, recorder.capture(model="m", env="e"), seeds=[1, 2])
        path = recorder.export(tmp_path / "b")

    (workload,) = load(path).workloads
    assert result.coverage.scored == 2
    by_seed = {one.seed: one for one in workload.episodes}
    assert {seed: one.lane for seed, one in by_seed.items()} == {1: 0, 2: 1}
    for seed, length in ((1, 3), (2, 6)):
        (film,) = by_seed[seed].media
        assert (film.camera, film.frame_count) == ("render", length)
        steps = by_seed[seed].trajectory
        assert steps is not None
        assert steps.steps == length


def test_the_overlay_says_episode_step_return_and_seed(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    assert hud_text(episode=3, step=7, total=-1.5, seed=42) == (
        "episode 3  step 7  return -1.50  seed 42"
    )
    plain = recorded(play, walk(size=(120, 400)), tmp_path / "plain", seeds=[1])
    marked = recorded(play, walk(size=(120, 400)), tmp_path / "marked", seeds=[1], hud=True)

    ((without,),), ((drawn,),) = films(plain), films(marked)
    top = frames_of(marked / drawn.path)[4][:9, :250, 0]
    assert int(top.max()) > 200
    assert int(frames_of(plain / without.path)[4][:9, :250, 0].max()) < 130
    assert int(frames_of(marked / drawn.path)[4][60, 200, 0]) == pytest.approx(100, abs=5)


def test_every_letter_of_the_overlay_has_a_shape() -> None:
    letters = set(hud_text(episode=1, step=2, total=-3.4567890, seed=5)) - {" "}
    shapes: set[bytes] = set()
    for letter in letters | set("0123456789"):
        frame = np.zeros((9, 6, 3), np.uint8)
        draw(frame, letter)
        assert frame.any(), letter
        shapes.add(frame.tobytes())

    assert len(shapes) == len(letters | set("0123456789"))


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="codec is 'vp8'"):
        Recorder(codec="vp8")  # type: ignore[arg-type]  # the mistake under test


def test_whoever_hands_over_too_much_waits_until_there_is_room() -> None:
    worker, gate, handed = Worker(most=100), Event(), Event()
    worker.put(gate.wait)
    worker.put(lambda: None, weight=90)

    def more() -> None:
        worker.put(lambda: None, weight=20)
        handed.set()

    thread = Thread(target=more)
    thread.start()
    assert not handed.wait(0.1)
    gate.set()
    assert handed.wait(10)
    thread.join()
    worker.wait()
    worker.close()


def test_what_a_job_raises_comes_out_where_it_is_waited_for() -> None:
    worker = Worker(most=1)

    def fails() -> None:
        raise ValueError("inside")

    worker.put(fails)
    with pytest.raises(ValueError, match="inside"):
        worker.wait()
    worker.wait()
    worker.close()


def test_without_pyav_a_run_is_recorded_without_videos_and_says_so(
    play: Played, walk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with Recorder() as recorder:
        with pytest.warns(UserWarning, match=r"no video is recorded: .*rlmesh\[video\]"):
            play(walk(), recorder.capture(model="m", env="e"), seeds=[1])

        (one,) = recorder.workloads[0].episodes
        assert one.media == ()
        assert one.trajectory is not None
        with pytest.raises(MissingDependencyError, match="PyAV, which is not installed"):
            recorder.capture(model="m", env="e", cameras=["render"])


def test_environments_of_a_list_are_filmed_one_by_one(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with Recorder() as recorder:
        result = play([walk(), walk()], recorder.capture(model="m", env="e"), seeds=range(6))
        path = recorder.export(tmp_path / "b")

    assert result.coverage.scored == 6
    episodes = load(path).workloads[0].episodes
    assert sorted(str(one.seed) for one in episodes) == list("012345")
    assert [[film.camera for film in one.media] for one in episodes] == [["render"]] * 6
    assert [[film.frame_count for film in one.media] for one in episodes] == [[5]] * 6


def test_environments_in_processes_of_their_own_are_filmed_too(
    play: Played, walk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The processes import this test by the name that pytest has given it.
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[4]), *sys.path])
    with Recorder() as recorder:
        hooks = recorder.capture(model="m", env="e")
        play(lambda: walk(), hooks, seeds=[1, 2, 3], num_workers=2)
        path = recorder.export(tmp_path / "b")

    for (film,) in films(path):
        pictures = frames_of(path / film.path)
        assert [round(float(one.mean()) / 20) for one in pictures] == [1, 2, 3, 4, 5]


def test_where_nothing_is_drawn_the_warning_says_what_would_be(play: Played) -> None:
    env = gym.make("CartPole-v1")
    hooks = Recorder().capture(model="m", env="e", cameras=["render"])
    with pytest.warns(UserWarning, match=r"has nothing; .* render_mode='rgb_array'"):
        play(env, hooks, seeds=[1], model=RANDOM_SAMPLE)


@pytest.mark.parametrize("codec", ["av1", "h264"])
@pytest.mark.parametrize("fps", [1, 240, 500])
def test_a_video_has_as_many_frames_per_second_as_asked_for(
    codec: Any, fps: int, tmp_path: Path
) -> None:
    video = Video(tmp_path / "v.mp4", VideoSettings(fps=fps, codec=codec))
    for number in range(20):
        video.write(np.full((48, 64, 3), number * 10, np.uint8))
    video.finish()

    with av.open(str(video.path)) as container:
        stream = container.streams.video[0]
        assert stream.average_rate == fps
        assert stream.frames == 20
        assert [frame.pts for frame in container.decode(video=0)] == list(range(20))


def test_more_frames_per_second_than_a_file_can_tell_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="fps is 2147483648"):
        Recorder(fps=2**31)


ENCODES_NOTHING = """
import numpy as np
from pathlib import Path
from rlmesh.recorder.video import Video, VideoSettings

video = Video(Path("v.mp4"), VideoSettings())
video.write(np.zeros((48, 64, 3), np.uint8))
video.abandon()
"""


def test_an_encoder_that_is_ended_early_says_nothing_on_stderr(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "SVT_LOG"}
    done = subprocess.run(
        [sys.executable, "-c", ENCODES_NOTHING],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stderr == ""
