import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlmesh.models.seeds import predict_seed, trial_index


@pytest.mark.parametrize(
    ("seed", "index", "expected"),
    [(0, 0, 3060724065), (7, 0, 915059860), (7, 1, 1098514101), (42, 0, 2567013699)],
)
def test_predict_seeds_are_the_published_ones(seed: int, index: int, expected: int) -> None:
    assert predict_seed(seed, index) == expected


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 70_000))
def test_every_predict_seed_is_the_hash_of_its_seventeen_bytes(seed: int, index: int) -> None:
    digest = 0xCBF29CE484222325
    for byte in seed.to_bytes(8, "little", signed=True) + b"\xfe" + index.to_bytes(8, "little"):
        digest = ((digest ^ byte) * 0x100000001B3) % (1 << 64)

    assert predict_seed(seed, index) == digest % (1 << 32)


@pytest.mark.parametrize(
    ("seed", "index"), [(1 << 63, 0), (-(1 << 63) - 1, 0), (0, -1), (0, 1 << 64)]
)
def test_a_number_beyond_64_bits_overflows(seed: int, index: int) -> None:
    with pytest.raises(OverflowError):
        predict_seed(seed, index)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, None),
        ({}, None),
        ({"trial_index": 4}, 4),
        ({"trial_index": 4.0}, 4),
        ({"trial_index": True}, None),
        ({"trial_index": "4"}, None),
    ],
)
def test_the_trial_index_is_read_from_numbers_only(
    options: dict[str, object] | None, expected: int | None
) -> None:
    assert trial_index(options) == expected
