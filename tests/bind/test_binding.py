"""The front door: programs and bundles bound, proved, and run to the same bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.bind.uarch.builtin import builtin_uarchs
from nacre.nem.api.interpreter import NemInterpreter

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = (
    "conv2d_maxpool",
    "conv2d_relu",
    "gemm_bias_relu",
    "gemm_int4",
    "gemm_rmsnorm",
    "two_engines",
)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_bound_proved_and_runs_to_the_same_bytes(name: str) -> None:
    path = EXAMPLES / f"{name}.nem"
    interpreter = NemInterpreter()
    program = interpreter.load(path)
    rng = np.random.default_rng(0)
    buffers = [b for b in program.plan.program.buffers if b.level != "L1"]
    inputs = {b.name: rng.integers(0, 60, b.size or 0).astype(np.uint8) for b in buffers}
    expected = interpreter.start(program, dict(inputs)).run()
    image = nacre.bind(path)
    assert image.verify(path) == []
    for seed in (None, 1, 2):
        result = image.run(inputs, seed=seed)
        assert result.status == "completed"
        for buffer in buffers:
            assert result.read(buffer.name) == expected.read_buffer(buffer.name), (
                buffer.name,
                seed,
            )


def test_another_machine_binds_the_same_program() -> None:
    path = EXAMPLES / "conv2d_relu.nem"
    names = {nacre.bind(path, uarch=name).image.machine.uarch for name in builtin_uarchs()}
    assert names == set(builtin_uarchs())


def test_a_program_with_errors_is_not_bound() -> None:
    with pytest.raises(nacre.InputError):
        nacre.bind("program p:\nwait(t)\n")


@pytest.mark.parametrize("name", NAMES)
def test_stores_and_post_processing_have_parts_of_a_cstl_of_their_own(name: str) -> None:
    def parts(uarch: str) -> set[tuple[bool, str | None]]:
        image = nacre.bind(EXAMPLES / f"{name}.nem", uarch=uarch).image
        blocks = [block for stream in image.streams for block, _ in stream.blocks()]
        uses = [(block.op, use) for block in blocks for use in block.units]
        return {(operation == "store", use.part) for operation, use in uses if use.unit == "CSTL"}

    assert parts("npm4k") <= {(True, "CSTLB"), (False, "CSTLA")}
    assert (True, "CSTLB") in parts("npm4k")
    assert {part for _, part in parts("ideal")} == {None}
