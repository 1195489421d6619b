import pytest
from rlcore.command_line import Parser


def test_what_is_wrong_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="tool")
    for number in range(30):
        parser.add_argument(f"--option-{number}", type=int)

    with pytest.raises(SystemExit) as caught:
        parser.parse_args(["--option-3", "x"])

    assert caught.value.code == 2
    shown = "tool: error: argument --option-3: invalid int value: 'x' (see tool --help)\n"
    assert capsys.readouterr().err == shown
