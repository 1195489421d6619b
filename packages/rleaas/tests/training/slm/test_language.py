import pytest
from rlcore import ConfigurationError
from rleaas.training.slm.language import Language, read_language


def test_a_declared_language_reads_back_from_its_own_json() -> None:
    language = Language(pieces=("say ", "yes", "no"), ends=("yes", "no"), texts=("well ?",))

    assert read_language(language.to_json(), "language") == language


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        (["yes"], "must be an object"),
        ({"piece": ["yes"]}, "unknown key 'piece'"),
        ({"pieces": "yes"}, "language.pieces must be a list of texts"),
        ({"pieces": ["yes", ""]}, "language.pieces must be a list of texts, has ''"),
        ({"pieces": ["yes", "yes"]}, "names a piece twice"),
        ({"pieces": ["yes"], "ends": ["no"]}, "'no', which is not among the pieces"),
    ],
)
def test_a_language_that_makes_no_sense_is_refused_by_name(declared: object, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as refused:
        read_language(declared, "language")

    assert refused.value.code == "invalid_training_config"
