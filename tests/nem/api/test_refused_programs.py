"""Programs that cannot run, and calls that name none: refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from neminterp import InputError, NemInterpreter
from tests.nem.api.programs import write_program

TEXT = """
buffer A : L2 (size=64)
buffer B : L1 (size=64)
buffer Y : L2 (size=64)
loop i in [0..3]:
    let X_i = region(B, i * 16, 16) elem=f16, shape=[8], layout=C
    tX = transfer.async(dst=X_i, src=region(A, i * 16, 16))
    tR = relu.async in X_i out X_i deps=[tX]
    tS = store.async(dst=region(Y, i * 16, 16), src=X_i, deps=[tR])
endloop
"""


def refusal(call: Callable[[], object]) -> str:
    """The one reason for which a call is refused."""
    with pytest.raises(InputError) as caught:
        call()
    (found,) = caught.value.diagnostics
    assert found.code == "RUN05"
    assert found.severity == "error"
    return found.message


def codes(call: Callable[[], object]) -> list[str]:
    with pytest.raises(InputError) as caught:
        call()
    return [d.code for d in caught.value.diagnostics]


def test_a_program_with_errors_is_refused_with_all_of_them() -> None:
    interp = NemInterpreter()
    text = TEXT.replace("deps=[tX]", "deps=[tQ]").replace("region(Y, i * 16", "region(Q, i * 16")
    program = interp.load_string(text)
    errors = [d for d in interp.validate(program) if d.severity == "error"]
    assert len(errors) >= 2
    for call in (interp.run, interp.start):
        with pytest.raises(InputError) as caught:
            call(program, inputs={"A": bytes(64)})
        assert list(caught.value.diagnostics) == errors


def test_a_program_that_does_not_follow_the_grammar_is_refused() -> None:
    interp = NemInterpreter()
    program = interp.load_string("buffer A : L2 (size=\nloop loop\n")
    assert codes(lambda: interp.run(program))
    assert interp.ddr_info().allocated == 0


def test_errors_of_a_group_may_be_allowed() -> None:
    interp = NemInterpreter()
    program = interp.load_string(TEXT.replace(" deps=[tX]", ""))  # relu no longer waits
    assert set(codes(lambda: interp.run(program, inputs={"A": bytes(64)}))) == {"HAZ01", "HAZ03"}
    for allow in (["HAZ"], ["HAZ01", "HAZ03"], "haz"):
        result = interp.run(program, inputs={"A": bytes(64)}, allow=allow)
        assert result.status == "completed"
    assert codes(lambda: interp.run(program, allow=["NOPE"])) == ["RUN05"]


def test_a_document_with_devices_only_has_nothing_to_run(tmp_path: Path) -> None:
    interp = NemInterpreter()
    text = 'include "npm_lite.nem"\ndevice mine extends npm_lite {\n}\n'
    program = interp.load(write_program(tmp_path, text, "devices.nem"))
    assert interp.validate(program) == []
    for call in (interp.run, interp.start):
        assert "holds no program" in refusal(partial(call, program))
    assert interp.ddr_info().allocated == 0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda i: i.run("program.nem"), "load the program first"),
        (lambda i: i.start(None), "load the program first"),
        (lambda i: i.validate("text"), "load the program first"),
        (lambda i: i.dump_ast("text"), "load the program first"),
        (lambda i: i.get_device_info("text"), "load the program first"),
        (lambda i: i.load(3), "a path is text or a Path, found int"),
        (lambda i: i.load_string(b"program p:"), "a program is text, found bytes"),
        (lambda i: i.set_scheduling("fair"), "scheduling is `fair`"),
        (lambda i: i.set_scheduling("random", seed="x"), "the seed is `x`"),
    ],
)
def test_calls_with_the_wrong_kind_of_argument_are_refused(
    call: Callable[[NemInterpreter], object], says: str
) -> None:
    assert says in refusal(lambda: call(NemInterpreter()))


def test_files_that_hold_no_text_are_refused(tmp_path: Path) -> None:
    interp = NemInterpreter()
    (tmp_path / "binary.nem").write_bytes(b"\xff\xfe\x00")
    assert codes(lambda: interp.load(tmp_path / "binary.nem")) == ["LEX10"]
    assert codes(lambda: interp.load(tmp_path / "missing.nem")) == ["LEX11"]
    assert codes(lambda: interp.load(tmp_path)) == ["LEX11"]
