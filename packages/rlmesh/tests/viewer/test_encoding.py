import sys
from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from rlmesh.transport.png import decode_png
from rlmesh.viewer.encoding import FrameEncoder, frame_encoder

Picture = NDArray[np.uint8]


@pytest.fixture
def photo() -> Picture:
    """Soft waves of colour, of an odd size."""
    rows, columns = np.mgrid[0:121, 0:163]
    waves = [np.sin(rows / 17 + shift) + np.cos(columns / 23) for shift in (0, 2, 4)]
    return ((np.stack(waves, axis=-1) + 2) * 63).astype(np.uint8)


def decoded(file: bytes) -> NDArray[np.int32]:
    with Image.open(BytesIO(file)) as image:
        return np.asarray(image.convert("RGB"), np.int32)


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture(params=["av", "PIL.Image"])
def jpeg(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[int], FrameEncoder]:
    """Makes an encoder with one of the two libraries, the other one being absent."""
    without(monkeypatch, "PIL.Image" if request.param == "av" else "av")
    return lambda quality: frame_encoder("jpeg", quality)


def test_a_jpeg_shows_the_picture(jpeg: Callable[[int], FrameEncoder], photo: Picture) -> None:
    encoder = jpeg(90)
    file = encoder.encode(photo)
    assert (encoder.mime, encoder.advisory) == ("image/jpeg", None)
    assert file.startswith(b"\xff\xd8\xff")
    seen = decoded(file)
    assert seen.shape == photo.shape
    assert np.abs(seen - photo).mean() < 3


def test_quality_decides_the_size(jpeg: Callable[[int], FrameEncoder]) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (96, 128, 3), np.uint8)
    sizes = [len(jpeg(quality).encode(noise)) for quality in (1, 25, 50, 75, 100)]
    assert sizes == sorted(set(sizes))


def test_both_libraries_mean_about_the_same_by_quality(
    monkeypatch: pytest.MonkeyPatch, photo: Picture
) -> None:
    by_av = frame_encoder("jpeg", 75).encode(photo)
    without(monkeypatch, "av")
    by_pillow = frame_encoder("jpeg", 75).encode(photo)
    assert 0.5 < len(by_av) / len(by_pillow) < 2


def test_without_either_library_frames_are_png_and_the_user_is_told(
    monkeypatch: pytest.MonkeyPatch, photo: Picture
) -> None:
    without(monkeypatch, "av", "PIL.Image")
    encoder = frame_encoder("jpeg", 75)
    assert encoder.mime == "image/png"
    assert encoder.advisory is not None
    assert "rlmesh[video]" in encoder.advisory
    assert np.array_equal(decode_png(encoder.encode(photo)), photo)


def test_png_is_exact_and_needs_no_library(monkeypatch: pytest.MonkeyPatch, photo: Picture) -> None:
    without(monkeypatch, "av", "PIL.Image")
    encoder = frame_encoder("png", 75)
    assert (encoder.mime, encoder.advisory) == ("image/png", None)
    assert np.array_equal(decode_png(encoder.encode(photo)), photo)


def test_a_picture_of_one_pixel_is_encoded(jpeg: Callable[[int], FrameEncoder]) -> None:
    red = np.full((1, 1, 3), (200, 0, 0), np.uint8)
    assert np.abs(decoded(jpeg(100).encode(red)) - red).max() < 12
