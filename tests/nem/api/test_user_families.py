"""Families of users that ask for `quant`: dequantise, the operation, quantise again.

The oracle knows nothing of the kernels: it computes in f64 from the formulas of textbooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from nacre.nem.api import NemInterpreter
from nacre.nem.spec.opcodes import OPCODES

Reals: TypeAlias = Any  # arrays of any type
SCALE, ZERO = {"i4": 0.5, "i8": 0.03125, "u8": 0.03125}, {"i4": -1, "i8": 5, "u8": 120}
LIMITS = {"i4": (-8, 7), "i8": (-128, 127), "u8": (0, 255)}


def _softmax(x: Reals) -> Reals:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _layernorm(x: Reals, g: Reals, b: Reals) -> Reals:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * g + b


def _rmsnorm(x: Reals, g: Reals) -> Reals:
    return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5) * g


def _windows(x: Reals) -> Reals:
    return np.stack([x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)])


UNARY: Mapping[str, tuple[str, Callable[[Reals], Reals]]] = {
    "relu": ("", lambda x: np.maximum(x, 0)),
    "leaky_relu": ("alpha=0.25", lambda x: np.where(x < 0, 0.25 * x, x)),
    "sigmoid": ("", lambda x: 1 / (1 + np.exp(-x))),
    "tanh": ("", np.tanh),
    "exp": ("", np.exp),
    "log": ("", lambda x: np.log(np.where(x >= 0, x, np.nan))),
    "sqrt": ("", lambda x: np.sqrt(np.where(x >= 0, x, np.nan))),
    "abs": ("", np.abs),
    "neg": ("", np.negative),
    "gelu": ("", lambda x: x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2),
    "silu": ("", lambda x: x / (1 + np.exp(-x))),
    "clamp": ("min_val=-0.5 max_val=1.0", lambda x: np.clip(x, -0.5, 1.0)),
    "softmax": ("axis=1", _softmax),
    "log_softmax": ("axis=1", lambda x: np.log(_softmax(x))),
}
BINARY: Mapping[str, Callable[[Reals, Reals], Reals]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
OTHERS: Mapping[str, tuple[str, str, str, Callable[..., Reals]]] = {
    # inputs, shape of the output, attributes, what it is
    "layernorm": ("X, g, g", "4,4", "axis=1 epsilon=1.0e-5", _layernorm),
    "rmsnorm": ("X, g", "4,4", "axis=1 epsilon=1.0e-5", _rmsnorm),
    "reduce_sum": ("X", "4", "axes=[1] keepdims=false", lambda x: x.sum(axis=1)),
    "reduce_max": ("X", "4", "axes=[1] keepdims=false", lambda x: x.max(axis=1)),
    "reduce_min": ("X", "4", "axes=[1] keepdims=false", lambda x: x.min(axis=1)),
    "avgpool": (
        "I", "1,2,2,1", "kernel_shape=[2, 2] pads=[0, 0, 0, 0] strides=[2, 2]",
        lambda x: _windows(x).mean(axis=0),
    ),
    "matmul": ("X, V", "4,4", "accum_type=i32", np.matmul),
}  # fmt: skip
SHAPES = {"X": "4,4", "V": "4,4", "g": "4", "I": "1,4,4,1"}


def family(op: str, elem: str) -> str:
    opcode = OPCODES[op]
    names = [o.name for o in opcode.operands]
    accum = "    accum = i32\n" if opcode.attribute("accum_type") else ""
    bindings = "".join(f"    {name}: T\n" for name in names)
    return (
        f"type_family {op}.q<T: {{{elem}}}> {{\n{bindings}{accum}    quant = required\n"
        f"    variants:\n        default: {{}} conformance: {{ MAY <{elem}> }}\n}}\n"
    )


def region(place: int, shape: str, elem: str, *, is_wide: bool = False) -> str:
    scale = SCALE[elem] * (2 if is_wide else 1)
    quant = f"per_tensor(scale={scale}, zero_point={ZERO[elem]})"
    layout = {1: "C", 2: "MN", 4: "NHWC"}[shape.count(",") + 1]
    return f"region(M, {place}, 16) elem={elem}, shape=[{shape}], layout={layout}, quant={quant}"


def program(elem: str, tasks: list[tuple[str, str, str, str]]) -> str:
    """All operations, each into sixteen bytes of its own; outputs have twice the scale."""
    size = 64 + 16 * len(tasks)
    lines = ['include "families.nem"', "device mine", "program p:"]
    lines += [f"buffer S : L2 (size={size})", f"buffer M : L1 (size={size})"]
    lines += [
        f"let {name} = {region(16 * (name == 'V'), shape, elem)}" for name, shape in SHAPES.items()
    ]
    lines += ["t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))"]
    for n, (op, inputs, shape, attributes) in enumerate(tasks):
        out = region(64 + 16 * n, shape, elem, is_wide=True)
        lines.append(f"t{n} = {op}.sync in {inputs} out {out} {attributes}")
    return "\n".join(lines) + "\n"


def stored(values: Reals, elem: str) -> Reals:
    """A byte an element; i4 two to a byte, the low one first."""
    flat = values.reshape(-1)
    if elem != "i4":
        return flat.astype(np.int8 if elem == "i8" else np.uint8).view(np.uint8)
    nibbles = (flat & 15).astype(np.uint8)
    return nibbles[::2] | nibbles[1::2] << 4


def loaded(raw: Reals, elem: str, count: int) -> Reals:
    if elem != "i4":
        return raw.view(np.int8 if elem == "i8" else np.uint8)[:count].astype(np.int64)
    nibbles = np.stack([raw & 15, raw >> 4], axis=1).reshape(-1)[:count].astype(np.int64)
    return np.where(nibbles > 7, nibbles - 16, nibbles)


def quantised(reals: Reals, elem: str) -> Reals:
    steps = np.nan_to_num(np.rint(reals / (2 * SCALE[elem])), nan=0.0)
    return np.clip(steps + ZERO[elem], *LIMITS[elem])


@pytest.mark.parametrize("elem", ["i8", "u8", "i4"])
def test_every_operation_is_computed_on_real_values(elem: str, tmp_path: Path) -> None:
    rows: list[tuple[str, str, str, str]] = []
    oracles: list[Callable[..., Reals]] = []
    for op, (attributes, function) in UNARY.items():
        rows.append((op, "X", "4,4", attributes))
        oracles.append(function)
    for op, binary in BINARY.items():
        rows.append((op, "X, V", "4,4", ""))
        oracles.append(binary)
    for op, (inputs, shape, attributes, function) in OTHERS.items():
        rows.append((op, inputs, shape, attributes))
        oracles.append(function)
    names = list(dict.fromkeys(op for op, *_ in rows))
    listed = " ".join(f"{op}.q<{elem}>.default" for op in names)
    (tmp_path / "families.nem").write_text(
        'include "npm_lite.nem"\n'
        + "".join(family(op, elem) for op in names)
        + f"device mine extends npm_lite {{\n    opcode.extended {{ {listed} }}\n}}\n"
    )
    file = tmp_path / "p.nem"
    file.write_text(program(elem, rows))
    low, high = LIMITS[elem]
    x, v = np.random.default_rng(3).integers(low, high + 1, (2, 16))
    interp = NemInterpreter()
    loaded_program = interp.load(file)
    assert [str(d) for d in interp.validate(loaded_program) if d.severity == "error"] == []
    memory = np.zeros(64 + 16 * len(rows), np.uint8)
    for place, values in ((0, x), (16, v)):
        raw = stored(values, elem)
        memory[place : place + raw.size] = raw
    result = interp.run(loaded_program, {"S": memory})
    assert result.status == "completed", result.diagnostics
    raw = np.frombuffer(result.read_buffer("M"), np.uint8)
    real = {
        name: (values - ZERO[elem]) * SCALE[elem]
        for name, values in (("X", x), ("V", v), ("g", x[:4]), ("I", x))
    }
    for n, ((op, inputs, *_), oracle) in enumerate(zip(rows, oracles, strict=True)):
        operands = [
            real[name].reshape([int(d) for d in SHAPES[name].split(",")])
            for name in inputs.split(", ")
        ]
        with np.errstate(all="ignore"):
            expected = quantised(oracle(*operands).astype(np.float64), elem).reshape(-1)
        found = loaded(raw[64 + 16 * n : 80 + 16 * n], elem, expected.size)
        # Only a value in the very middle of two steps may go the other way.
        off = np.abs(found - expected)
        assert off.max() <= 1, (op, found, expected)
        assert np.count_nonzero(off) <= 1, (op, found, expected)
