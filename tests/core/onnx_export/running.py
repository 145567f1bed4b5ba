"""Modules written as ONNX models and run by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.core.onnx_export.export import to_onnx

Array = npt.NDArray[Any]

# NumPy lacks these, and onnxruntime gives and takes arrays of NumPy.
FOREIGN = {"bf16": "f32", "f8e4m3": "f32", "f8e5m2": "f32", "i4": "i8", "u4": "u8"}


def plain(module: Module) -> Module:
    """The module with casts at its borders where NumPy lacks an element type."""
    builder = Builder()
    given = {
        op.value_id: builder.input(
            str(op.attributes["name"]), FOREIGN.get(op.type.dtype, op.type.dtype), op.type.shape
        )
        for op in module.inputs
    }
    ids: dict[int, int] = {}
    for op in module.operations:
        if op.opcode != "Input":
            ids[op.value_id] = builder.copy(op, tuple(ids[operand] for operand in op.operands))
        elif op.type.dtype in FOREIGN:
            ids[op.value_id] = builder.add("Cast", given[op.value_id], to=op.type.dtype)
        else:
            ids[op.value_id] = given[op.value_id]
    outputs = []
    for value in module.outputs:
        dtype = module.by_id[value].type.dtype
        outputs.append(
            builder.add("Cast", ids[value], to=FOREIGN[dtype]) if dtype in FOREIGN else ids[value]
        )
    return replace(builder.module(*outputs), labels=module.labels)


def session_of(path: Path, is_plain: bool = False) -> onnxruntime.InferenceSession:
    """A session on the processor, after the model has been checked.

    A plain one fuses nothing: onnxruntime keeps factors of f64 products that it has fused in f32.
    """
    onnx.checker.check_model(str(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    if is_plain:
        level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.graph_optimization_level = level
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(
    module: Module, inputs: Mapping[str, Array], folder: Path, is_plain: bool = False
) -> list[Array]:
    """The outputs of a module as onnxruntime computes them."""
    return run_each(module, [inputs], folder, is_plain)[0]


def run_each(
    module: Module, cases: Sequence[Mapping[str, Array]], folder: Path, is_plain: bool = False
) -> list[list[Array]]:
    """The outputs for each of several inputs: making a session takes longer than a run."""
    path = folder / "model.onnx"
    to_onnx(module, path)
    session = session_of(path, is_plain)
    return [
        [np.asarray(array) for array in session.run(None, {n: np.asarray(a) for n, a in c.items()})]
        for c in cases
    ]


def attempt(
    module: Module, inputs: Mapping[str, Array], folder: Path
) -> tuple[list[Array], list[str]]:
    """The outputs, nothing fused, or the messages of what has no form."""
    found, reasons = attempt_each(module, [inputs], folder)
    return (found[0] if found else []), reasons


def attempt_each(
    module: Module, cases: Sequence[Mapping[str, Array]], folder: Path
) -> tuple[list[list[Array]], list[str]]:
    """The outputs for each input, nothing fused, or the messages of what has no form."""
    try:
        return run_each(module, cases, folder, is_plain=True), []
    except InputError as error:
        return [], [found.message for found in error.diagnostics if found.code == "EXP01"]


def operations_of(path: Path) -> list[str]:
    """The operations of a model's nodes, in order."""
    return [node.op_type for node in onnx.load(path).graph.node]


def assert_close(
    found: Sequence[Array],
    expected: Sequence[Array],
    ulps: float = 0,
    absolute: float = 0,
    room_for_all: float = 0,
) -> None:
    """Integers to the bit; floats within so many ulps.

    `absolute` is a part of the largest element of their tensor, which is allowed as well.
    """
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind != "f":
            np.testing.assert_array_equal(a, b)
            continue
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        np.testing.assert_array_equal(np.where(np.isinf(a), a, 0), np.where(np.isinf(b), b, 0))
        is_finite = np.isfinite(b)
        x, y = a[is_finite].astype(np.float64), b[is_finite].astype(np.float64)
        top = float(np.abs(y).max(initial=0))
        least = np.finfo(b.dtype)
        ulp = np.abs(y) * float(least.eps) + float(least.smallest_subnormal)
        room = ulps * ulp + absolute * top + room_for_all
        assert (np.abs(x - y) <= room).all(), (
            x,
            y,
            (np.abs(x - y) / np.maximum(room, 1e-300)).max(),
        )
