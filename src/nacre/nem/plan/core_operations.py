"""`compute op="core.NAME"` on regions: functions by name, and truth values that lie there as bytes.

Operations of Core IR that have an attribute `op` carry its value behind their name, for `op` of
`compute` is that name: `core.Compare.Eq`. Regions have no element type for truth values. They lie
in them as u8, 0 and 1, and are read and written as what they are where an operation means them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import safe
from nacre.kernels.interface.call import Array, Call, Fault, Primitive, Run, TensorType
from nacre.kernels.registry import PRIMITIVES

_BOOL, _BYTE = GRAPH_TYPES["bool"], GRAPH_TYPES["u8"]
_FUNCTIONAL = frozenset({"core.BinOp", "core.Unary", "core.Compare", "core.Reduce", "core.QBinOp",
                         "core.QPool"})  # fmt: skip
# Operands that are truth values, by their places, and whether the result is one.
_TRUTHS: dict[str, tuple[tuple[int, ...], bool]] = {
    "core.Where": ((0,), False),
    "core.Reduce.Any": ((0,), True),
    "core.Reduce.All": ((0,), True),
    "core.Unary.IsNan": ((), True),
    "core.Unary.IsInf": ((), True),
    **{f"core.Compare.{op}": ((), True) for op in ("Eq", "Ne", "Lt", "Le", "Gt", "Ge")},
}


def primitive_of(opcode: str) -> Primitive | None:
    """The primitive that computes an opcode or an operation; None where there is none."""
    return PRIMITIVES.get(_split(opcode)[0] if "." in opcode else opcode)


def _split(opcode: str) -> tuple[str, str]:
    """The name of a primitive, and the function that stands behind it."""
    name, _, function = opcode.rpartition(".")
    return (name, function) if name in _FUNCTIONAL else (opcode, "")


def resolve_call(opcode: str, call: Call) -> Call:
    """A call as the primitive wants it: the function among its attributes, truth values as such."""
    if not opcode.startswith("core."):
        return call
    _, function = _split(opcode)
    attributes = {name: value for name, value in call.attributes.items() if name != "op"}
    if function:
        attributes["op"] = function
    indices, is_result = _truth_operands(opcode, call)
    inputs = tuple(
        _as_truth_type(type_) if index in indices else type_
        for index, type_ in enumerate(call.inputs)
    )
    outputs = tuple(_as_truth_type(t) or t for t in call.outputs) if is_result else call.outputs
    return replace(call, inputs=inputs, outputs=outputs, attributes=attributes)


def _truth_operands(opcode: str, call: Call) -> tuple[tuple[int, ...], bool]:
    if opcode == "core.Cast":
        return (), call.attributes.get("to") == "bool"
    return _TRUTHS.get(opcode, ((), False))


def _as_truth_type(type_: TensorType | None) -> TensorType | None:
    if type_ is None or type_.elem is not _BYTE:
        return type_
    return replace(type_, elem=_BOOL)


def view_truths_as_bytes(original: Call, call: Call, run: Run) -> Run:
    """A run on regions' arrays, of which some are bytes where the primitive takes truth values."""
    reads = [
        i for i, (a, b) in enumerate(zip(original.inputs, call.inputs, strict=True)) if a is not b
    ]
    writes = [
        i for i, (a, b) in enumerate(zip(original.outputs, call.outputs, strict=True)) if a is not b
    ]
    if not reads and not writes:
        return run

    def run_on_bytes(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        arguments = [
            x != 0 if index in reads and x is not None else x for index, x in enumerate(inputs)
        ]
        results = [y.view(np.bool_) if index in writes else y for index, y in enumerate(outputs)]
        return run(arguments, results)

    return run_on_bytes


def shape_problem(primitive: Primitive, call: Call) -> str | None:
    """Why a primitive cannot work on the shapes and attributes of a call; None where it can."""
    expected = primitive.shape([t.shape if t else None for t in call.inputs], call.attributes)
    actual = [t.shape for t in call.outputs]
    if expected is not None and list(expected) == actual:
        return None
    inputs = [list(t.shape) for t in call.inputs if t is not None]
    operands = f"inputs of shape {_shapes_text(inputs)}"
    if expected is None:
        return f"{operands} and the attributes do not go together"
    return (
        f"{operands} give shape {_shapes_text(expected)}, but the output has {_shapes_text(actual)}"
    )


def _shapes_text(shapes: Sequence[Sequence[int]]) -> str:
    return ", ".join(str(list(shape)) for shape in shapes) or "nothing"


def call_problem(opcode: str, original: Call) -> str | None:
    """Why an operation by name cannot run on a call; None where it can, or is not known here."""
    primitive = primitive_of(opcode)
    if primitive is None:
        return None
    try:
        call = resolve_call(opcode, original)
        problem = shape_problem(primitive, call)
        if problem is None:
            primitive.bind(call)
    except KeyError as error:
        return f"it lacks or does not know `{safe(str(error.args[0]))}`"
    except (ValueError, TypeError, IndexError) as error:
        return safe(str(error))
    return problem
