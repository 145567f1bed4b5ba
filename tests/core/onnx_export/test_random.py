"""Random modules, written, run by onnxruntime, and read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.onnx.importer import from_onnx
from tests.core.modules import inputs_of, modules
from tests.core.onnx_export.running import Array, assert_close, attempt

# Errors of single operations add up along a module.
ULPS, PART = 64, 1e-5
# Where summands cancel each other, what is left depends on the order of the sum.
SUMS, CANCELLED = frozenset({"Sum", "Mean", "Dot", "MatMul", "Linear", "Conv2d"}), 1e-6


def passes_over_nan(module: Module, inputs: dict[str, Array]) -> bool:
    """Whether a largest or smallest element is NaN: onnxruntime takes another one then."""
    reduced = tuple(op.operands[0] for op in module if op.opcode == "Reduce")
    if not reduced:
        return False
    arrays = evaluate(replace(module, outputs=reduced), inputs)
    return any(array.dtype.kind == "f" and np.isnan(array).any() for array in arrays)


def largest_summand(module: Module, inputs: dict[str, Array]) -> float:
    """The largest finite element that is added up anywhere."""
    added = tuple(operand for op in module if op.opcode in SUMS for operand in op.operands)
    arrays = evaluate(replace(module, outputs=added), inputs) if added else []
    floats = [np.abs(array[np.isfinite(array)]) for array in arrays if array.dtype.kind == "f"]
    return max((float(sizes.max(initial=0)) for sizes in floats), default=0.0)


def values_of(module: Module, seed: int) -> dict[str, Array]:
    """Values for the inputs, NaN and infinities among them."""
    return {name: np.asarray(array) for name, array in inputs_of(module, seed).items()}


def expected_of(module: Module, inputs: dict[str, Array]) -> list[Array]:
    try:
        return evaluate(module, inputs)
    except InputError:
        assume(False)
        raise


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(modules(), st.integers(0, 50))
def test_modules_of_core_v1(tmp_path: Path, module: Module, seed: int) -> None:
    both_ways(module, seed, tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(modules(is_further=True), st.integers(0, 50))
def test_further_modules(tmp_path: Path, module: Module, seed: int) -> None:
    both_ways(module, seed, tmp_path)


def both_ways(module: Module, seed: int, folder: Path) -> None:
    inputs = values_of(module, seed)
    expected = expected_of(module, inputs)
    assume(not passes_over_nan(module, inputs))
    found, reasons = attempt(module, inputs, folder)
    assert not reasons
    room = CANCELLED * largest_summand(module, inputs)
    assert_close(found, expected, ULPS, PART, room)
    again = from_onnx(folder / "model.onnx")
    assert again.input_types == module.input_types
    assert_close(evaluate(again, inputs), expected, ULPS, PART, room)
