"""NEM tasks written by hand: one compute task on typed regions, run by the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.compile.quantise.affine import Affine
from nacre.nem.api.interpreter import NemInterpreter

Array = npt.NDArray[Any]
_ELEMS = {"int8": "i8", "int32": "i32", "float16": "f16", "float32": "f32"}
_LAYOUTS = {1: "C", 2: "MN", 4: "NHWC"}


@dataclass(frozen=True)
class Operand:
    """An array, or the shape and type of a result, with a quantisation as NEM writes it."""

    array: Array
    quant: str = ""
    layout: str = ""

    def region(self, buffer: str) -> str:
        """As the text of a typed region."""
        dims = ", ".join(map(str, self.array.shape))
        layout = self.layout or _LAYOUTS[self.array.ndim]
        quant = f", quant={self.quant}" if self.quant else ""
        elem = _ELEMS[self.array.dtype.name]
        head = f"region({buffer}, 0, {self.array.nbytes})"
        return f"{head} elem={elem}, shape=[{dims}], layout={layout}{quant}"


def per_tensor(affine: Affine) -> str:
    """One scale for all."""
    return f"per_tensor(scale={_number(affine.scale)}, zero_point={affine.zero})"


def per_channel(axis: int, scales: Sequence[float]) -> str:
    """A scale for each part of an axis, without zero points."""
    told = ", ".join(map(_number, scales))
    zeros = ", ".join("0" for _ in scales)
    return f"per_channel(axis={axis}, scales=[{told}], zero_points=[{zeros}])"


def run(
    opcode: str,
    inputs: Sequence[Operand],
    output: Operand,
    attributes: str = "",
    device: str = "npm4k",
    ordered: bool = False,
) -> Array:
    """What a task leaves in its output."""
    names = "ABCD"[: len(inputs)]
    operands = [*inputs, output]
    buffers = "".join(
        f"buffer {name} : L1[0] (size={max(x.array.nbytes, 1)}, align=64)\n"
        for name, x in zip((*names, "Y"), operands, strict=True)
    )
    sources = ", ".join(x.region(name) for name, x in zip(names, inputs, strict=True))
    text = (
        f'include "{device}.nem"\ndevice {device}\nprogram one:\n{buffers}'
        f"t = {opcode}.async in {sources} out {output.region('Y')} {attributes}\n"
    )
    machine = NemInterpreter(ordered=ordered)
    program = machine.load_string(text)
    program.require_runnable()
    arrays = {name: np.ascontiguousarray(x.array) for name, x in zip(names, inputs, strict=True)}
    result = machine.start(program, arrays).run()
    assert result.status == "completed", result.diagnostics
    raw = np.frombuffer(result.read_buffer("Y"), output.array.dtype, output.array.size)
    return raw.reshape(output.array.shape)


def _number(value: float) -> str:
    text = repr(float(np.float32(value)))
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{mark}{exponent}"
