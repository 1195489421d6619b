"""One video: pictures go in one by one, an MP4 file that browsers play comes out."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from rlcore import ConfigurationError, MissingDependencyError, RecordingError
from rlcore.environ import defaulted

from rlmesh.recorder.fitting import fitted, video_size
from rlmesh.runs.pictures import Picture

if TYPE_CHECKING:
    from types import ModuleType

CodecName = Literal["av1", "h264"]
CODECS: Final[tuple[CodecName, ...]] = ("av1", "h264")

_ENCODERS: Final = {"av1": ("libsvtav1", "libaom-av1"), "h264": ("libx264", "libopenh264")}
_FASTEST_SVT: Final = 240  # it refuses more
_MOST: Final = 2**31 - 1  # what the MP4 format has room for
_BT601: Final = 6  # of the colour tags in ISO/IEC 23091-2, as published


@dataclass(frozen=True, slots=True)
class VideoSettings:
    """How videos are made.

    Attributes:
        fps: frames per second, at least 1.
        quality: 1 to 100.
        codec: `av1`, which is small, or `h264`, which older players know as well.

    Raises:
        ConfigurationError: one of them is out of range.
    """

    fps: int = 30
    quality: int = 60
    codec: CodecName = "av1"

    def __post_init__(self) -> None:
        if not _whole(self.fps) or not 1 <= self.fps <= _MOST:
            raise ConfigurationError(
                f"fps is {self.fps!r}", hint=f"Give an integer from 1 to {_MOST}."
            )
        if not _whole(self.quality) or not 1 <= self.quality <= 100:
            raise ConfigurationError(
                f"quality is {self.quality!r}", hint="Give an integer from 1 to 100."
            )
        if self.codec not in CODECS:
            raise ConfigurationError(
                f"codec is {self.codec!r}", hint=f"Give one of {', '.join(CODECS)}."
            )

    @property
    def crf(self) -> int:
        """The quality in the codec's own measure: the better, the lower."""
        if self.codec == "av1":
            return max(1, min(63, round(65 - self.quality / 2)))
        return max(10, min(51, round(51 - self.quality * 0.41)))


def require_video() -> None:
    """Do nothing where videos can be made.

    Raises:
        MissingDependencyError: PyAV is not installed.
    """
    try:
        import av as _  # noqa: F401  # whether it can be imported is the question
    except ImportError as error:
        raise MissingDependencyError(
            "videos are made with PyAV, which is not installed",
            hint='Install it: pip install "rlmesh[video]", or record with cameras=[].',
        ) from error


class Video:
    """Encodes frames as they come; memory does not grow with their number.

    The first frame decides the size; later ones of another size get black borders.

    Args:
        path: the file.
        settings: how it is made.

    Raises:
        RecordingError: this build of PyAV has no encoder for the codec.
    """

    def __init__(self, path: Path, settings: VideoSettings) -> None:
        self.path = path
        self._settings = settings
        self._encoder = encoder(settings.codec)
        self._container: Any = None  # Any: PyAV's, which is imported lazily, as below
        self._stream: Any = None
        self._size = (0, 0, 1)
        self.frames = 0

    @property
    def height(self) -> int:
        """Pixels of a column; 0 before the first frame."""
        return self._size[0]

    @property
    def width(self) -> int:
        """Pixels of a row; 0 before the first frame."""
        return self._size[1]

    def write(self, picture: Picture) -> None:
        """Append a frame.

        Raises:
            OSError: the disk does not take it, or the encoder refuses it.
            ValueError: it is larger than any video.
        """
        import av

        if self._stream is None:
            self._open(*picture.shape[:2])
        stream: Any = self._stream
        pixels = fitted(picture, *self._size)
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        frame.pts = self.frames
        frame.time_base = Fraction(1, self._settings.fps)
        self._mux(stream.encode(frame))
        self.frames += 1

    def finish(self) -> None:
        """Write what the encoder still holds, and the index at the start of the file.

        Raises:
            OSError: the disk does not take it.
        """
        if self._container is not None:
            self._mux(self._stream.encode())
            self._close()

    def _mux(self, packets: list[Any]) -> None:  # Any: PyAV's
        for packet in packets:
            packet.duration = 1  # the last one's would be as long as the encoder plans with
            self._container.mux(packet)

    def abandon(self) -> None:
        """Stop, and remove the file."""
        try:
            self._close()
        except OSError:
            pass  # it is thrown away; that it could not be finished is why
        finally:
            self.path.unlink(missing_ok=True)

    def _open(self, height: int, width: int) -> None:
        import av

        self._size = tall, wide, _ = video_size(height, width)
        # With the index in front a browser plays the file before it has all of it.
        options = {"movflags": "faststart", "video_track_timescale": str(self._settings.fps)}
        container: Any = av.open(str(self.path), "w", format="mp4", container_options=options)
        self._container = container
        # It is what the encoder plans with; when frames are shown is said by the time base.
        rate = self._settings.fps
        if self._encoder == "libsvtav1":
            rate = min(rate, _FASTEST_SVT)
        stream: Any = container.add_stream(self._encoder, rate=rate, options=self._options())
        stream.width, stream.height, stream.pix_fmt = wide, tall, "yuv420p"
        context = stream.codec_context
        context.color_primaries = context.color_trc = context.colorspace = _BT601
        context.color_range = 1  # of television, as `yuv420p` has it
        context.thread_count = 1
        context.time_base = Fraction(1, self._settings.fps)
        with defaulted("SVT_LOG", "0"):  # it tells stderr about itself otherwise
            context.open()
        self._stream = stream

    def _options(self) -> dict[str, str]:
        crf = str(self._settings.crf)
        if self._encoder == "libsvtav1":
            # With one thread it takes 20 MiB instead of 100, and leaves the run its processors.
            return {"crf": crf, "preset": "9", "svtav1-params": "lp=1:pred-struct=1:rtc=1"}
        if self._encoder == "libaom-av1":
            return {"crf": crf, "cpu-used": "8", "usage": "realtime", "row-mt": "0"}
        return {"crf": crf, "preset": "veryfast"}

    def _close(self) -> None:
        container, self._container = self._container, None
        if container is not None:
            container.close()


@cache
def encoder(codec: CodecName) -> str:
    """Return the encoder of a codec that this build of PyAV has.

    Raises:
        RecordingError: it has none.
    """
    av = _quiet()
    for name in _ENCODERS[codec]:
        try:
            av.Codec(name, "w")
        except ValueError:  # PyAV's word for an unknown encoder is one as well
            continue
        return name
    raise RecordingError(
        f"this build of PyAV has no encoder for {codec}",
        hint=f"Choose another codec of {', '.join(CODECS)}.",
    )


def _quiet() -> ModuleType:
    import av
    import av.logging

    # Encoders talk about themselves on stderr; what fails is an exception all the same.
    av.logging.set_level(av.logging.ERROR)
    return av


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
