"""Every code of the machines is shown by a test, and has a page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from nacre.base.compression_forms import CompressionForm
from nacre.base.rules import RULES
from nacre.tcb.image import Operand
from nacre.tcb.machine.run import run_image
from nacre.tcb.rules import running
from tests.tcb.machine.images import SIZE, at, compute, copy, image, stream

CODES = sorted(code for code in vars(running) if code.startswith("TCB"))


def test_every_code_is_shown() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [code for code in CODES if f'"{code}"' not in tests] == []


@pytest.mark.parametrize("code", CODES)
def test_a_page_is_a_sentence_and_names_its_clause(code: str) -> None:
    rule = RULES[code]
    assert rule.spec.startswith("TCB / ")
    assert rule.summary[0].isupper()
    assert rule.summary.endswith(".")


def test_a_mask_of_more_elements_than_there_are_stops_the_run() -> None:
    source = Operand(
        "DDR", 0, "i8", (4,), compression=CompressionForm("sparse"), compressed_bytes=5
    )
    result = run_image(image(stream(copy(0, source, at("L2", 0, 4)))), {"in": b"\xff" * 512})
    assert result.status == "failed"
    assert [d.code for d in result.diagnostics] == ["TCB57"]


def test_an_accumulator_that_wraps_is_a_warning() -> None:
    one = Operand("DDR", 0, "i8", (1, 1))
    bias = Operand("DDR", 4, "i32", (1,))
    block = compute(0, "gemm", (one, one, bias), Operand("L2", 0, "i32", (1, 1)), unit="NMU")
    block = replace(block, attributes=(("accum_type", "i32"),))
    most = np.array([1, (1 << 31) - 1], np.int32).tobytes()
    result = run_image(image(stream(block)), {"in": most + bytes(SIZE // 2 - 8)})
    assert result.status == "completed"
    assert [(d.code, d.severity) for d in result.diagnostics] == [("TCB56", "warning")]
    assert result.read("l2")[:4] == np.array([-(1 << 31)], np.int32).tobytes()
