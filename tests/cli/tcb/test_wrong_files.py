"""`nacre bind` and `nacre tcb` with files that are none, or others: a reason, and a way on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runner import invoke
from tests.cli.tcb.test_verbs import CONV

Capsys = pytest.CaptureFixture[str]
VERBS = ("dis", "info", "time", "run")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    import nacre

    path = tmp_path_factory.mktemp("image") / "conv.tcb"
    nacre.bind(CONV).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("verb", VERBS)
def test_an_image_that_was_cut_says_how_to_go_on(
    capsys: Capsys, tmp_path: Path, data: bytes, verb: str
) -> None:
    cut = tmp_path / "cut.tcb"
    cut.write_bytes(data[:200])
    done = invoke(capsys, "tcb", verb, cut)
    assert done.status == 1
    text = done.out + done.err
    assert "error[TCB10]" in text
    assert "help: it was cut or changed on its way: copy it again, or bind the" in text


@pytest.mark.parametrize("verb", VERBS)
def test_a_program_is_no_image(capsys: Capsys, verb: str) -> None:
    done = invoke(capsys, "tcb", verb, CONV)
    assert done.status == 1
    assert "error[TCB05]" in done.out + done.err
    assert "help: `nacre bind` makes an image of a program" in done.out + done.err


@pytest.mark.parametrize("verb", [("bind", "-o", "out.tcb"), ("tcb", "verify")])
def test_an_image_is_no_program(
    capsys: Capsys, tmp_path: Path, data: bytes, verb: tuple[str, ...]
) -> None:
    path = tmp_path / "conv.tcb"
    path.write_bytes(data)
    own = [tmp_path / one if one == "out.tcb" else one for one in verb]
    done = invoke(capsys, *own, *([path] if verb[0] == "tcb" else []), path)
    assert done.status == 2
    assert "is an image, which is bound already: see `nacre tcb`" in done.err
    assert not (tmp_path / "out.tcb").exists()


def test_a_microarchitecture_has_a_name(capsys: Capsys, tmp_path: Path) -> None:
    done = invoke(capsys, "bind", CONV, "--uarch", "", "-o", tmp_path / "x.tcb")
    assert done.status == 1
    assert "error[BND13]: `` names no file" in done.out + done.err


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder that takes no files")
def test_what_cannot_be_written_is_named_as_it_was_given(capsys: Capsys) -> None:
    done = invoke(capsys, "bind", CONV, "-o", "/proc/image.tcb")
    assert done.status == 2
    assert "cannot write /proc/image.tcb: " in done.err
