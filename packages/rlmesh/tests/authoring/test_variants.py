import pytest
from rlmesh import Variant


def test_variants_are_values_with_parameters_of_their_own() -> None:
    params = {"size": 1}
    variant = Variant("small", params, title="Small")
    params["size"] = 2

    assert variant == Variant("small", {"size": 1}, title="Small")
    assert variant != Variant("small", {"size": 1})
    assert variant != "small"
    assert (variant.id, variant.params, variant.metadata) == (
        "small",
        {"size": 1},
        {"title": "Small"},
    )
    assert repr(variant) == "Variant('small', {'size': 1}, title='Small')"
    with pytest.raises(TypeError, match="unhashable"):
        hash(variant)


def test_parameters_of_a_variant_are_a_mapping() -> None:
    with pytest.raises(TypeError, match="parameters of the variant 'small' are 3"):
        Variant("small", 3)  # type: ignore[arg-type]  # the point of the test
