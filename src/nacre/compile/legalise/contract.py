"""The contract of legal modules in code: which operations the stages that follow take.

Everything is of a type that NEM has, `bool` as bytes of 0 and 1. A constant may stand wherever an
operand is said to be computed, in maps and in `MatMul` too: it then lies in memory like a tensor.
What breaks the contract and has no form on the device's units is an escape, run by name on the VPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from nacre.base.elements import ELEMENT_TYPES
from nacre.compile.geometry import swap_of
from nacre.compile.legalise.forms.masks.levelling import mask_values
from nacre.compile.legalise.forms.types import FIXED_RESULTS
from nacre.compile.legalise.lowerings import MAP_OPCODES, has_registered_form, lowering_of
from nacre.core.grouped_weights import grouped_weights_of
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS

_TYPES = frozenset(ELEMENT_TYPES) | {"bool"}
_FLOATS = frozenset({"f16", "f32"})
_BYTES = frozenset({"i8", "u8"})  # the largest of them is picked as they are
_WHOLE = frozenset({"Floor", "Ceil", "Round", "Trunc"})  # functions that leave nothing to round


class Candidate:
    """An operation of a module, and what it is applied to."""

    def __init__(self, module: Module, op: CoreOperation) -> None:
        self.module, self.op = module, op
        self.makers = [module.by_id[value] for value in op.operands]
        self.attributes: Mapping[str, Any] = OPS[op.opcode].with_defaults(op.attributes)

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """The shape of an operand."""
        return self.makers[index].type.shape

    def is_constant(self, index: int) -> bool:
        """Whether an operand is a constant, in groups or not; one that is not there counts."""
        if index >= len(self.makers):
            return True
        is_grouped = index == 1 and grouped_weights_of(self.module, self.op.operands[1])
        return _is_constant(self.makers[index]) or bool(is_grouped)


def _is_constant(op: CoreOperation) -> bool:
    return "constant" in OPS[op.opcode].traits


Check = Callable[[Candidate], str | None]  # what is wrong


def _float(candidate: Candidate) -> str | None:
    dtype = candidate.op.type.dtype
    return None if dtype in _FLOATS else f"it is of {dtype}, expected floats"


def _linear(candidate: Candidate) -> str | None:
    if not candidate.is_constant(1) or not candidate.is_constant(2):
        return "its weights or bias are computed, expected constants"
    if len(candidate.shape()) < 2:
        return "its input is a vector, expected rows"
    return _float(candidate)


def _matmul(candidate: Candidate) -> str | None:
    a, b = candidate.shape(0), candidate.shape(1)
    if len(a) != len(b) or len(a) not in (2, 3) or a[:-2] != b[:-2]:
        return f"its operands have the shapes {list(a)} and {list(b)}, expected equal batches"
    return _float(candidate)


def _plane_windows(candidate: Candidate, *, of_integers: bool = False) -> str | None:
    if candidate.attributes["layout"] != "NHWC" or candidate.op.type.rank != 4:
        return "its windows do not run over two axes with channels last"
    return None if of_integers else _float(candidate)


def _convolution(candidate: Candidate) -> str | None:
    channels = candidate.shape()[-1]
    if not candidate.is_constant(1) and candidate.shape(1) != (1, 1, 1, channels):
        return "its filter is computed"
    if not candidate.is_constant(2):
        return "its bias is computed"
    return _plane_windows(candidate)


def _pool(candidate: Candidate) -> str | None:
    if candidate.attributes["ceil"] or candidate.attributes.get("count_pad"):
        return "its windows hang over, or padding counts"
    if set(candidate.attributes["dilations"] or (1,)) != {1}:
        return "its windows have gaps"
    is_picked = candidate.op.opcode == "MaxPool" and candidate.op.type.dtype in _BYTES
    return _plane_windows(candidate, of_integers=is_picked)


def _row_norm(candidate: Candidate) -> str | None:
    if candidate.attributes["axis"] != candidate.op.type.rank - 1:
        return "it does not run along the last axis alone"
    if not candidate.is_constant(1) or not candidate.is_constant(2):
        return "its scale or bias is computed"
    return _float(candidate)


def _elementwise(candidate: Candidate) -> str | None:
    if lowering_of(candidate.op) is None:
        return "no unit of the device has this function"
    return _float(candidate)


def _cast(candidate: Candidate) -> str | None:
    source, target = candidate.makers[0].type.dtype, candidate.op.type.dtype
    if candidate.makers[0].opcode in FIXED_RESULTS:
        return None  # one task with what is before it
    is_whole = candidate.makers[0].attributes.get("op") in _WHOLE
    if source in _FLOATS and target != "bool" and target not in _FLOATS and not is_whole:
        return "it cuts off what is behind the point, where the device's cast rounds"
    return f"it asks whether elements of {source} are 0" if target == "bool" else None


def _transpose(candidate: Candidate) -> str | None:
    if swap_of(candidate.shape(), candidate.attributes["permutation"]) is None:
        return "it moves more than two runs of axes"
    return None


def _pad(candidate: Candidate) -> str | None:
    if candidate.attributes["mode"] != "constant" or min(candidate.attributes["pads"]) < 0:
        return "it is not padding with a constant"
    return None


def _resize(candidate: Candidate) -> str | None:
    filled, x, y = candidate.attributes, candidate.shape(), candidate.op.type.shape
    plain = ("nearest", "asymmetric", "floor", ())
    if (filled["mode"], filled["coordinate"], filled["rounding"], filled["scales"]) != plain:
        return "it does not repeat elements"
    if any(after % before for before, after in zip(x, y, strict=True)):
        return "it does not repeat elements a whole number of times"
    return None


def _gather(candidate: Candidate) -> str | None:
    if candidate.attributes.get("axis", 0) != 0:
        return "it does not pick along the first axis"
    return None if candidate.makers[1].type.dtype == "i32" else "its indices are not of i32"


def _always_legal(candidate: Candidate) -> str | None:
    return None


def _check_quantised(candidate: Candidate) -> str | None:
    if candidate.op.opcode == "Quantize" and candidate.makers[0].type.dtype != "f32":
        return "its input is not of f32"
    if not candidate.is_constant(1) or not candidate.is_constant(2):
        return "its scale or zero point is computed"
    return None


_VIEWS = ("Reshape", "ExpandDims", "Squeeze", "Slice", "Concat", "Broadcast")
_FUSED = ("QConv", "QLinear", "QPool", "QBinOp")
LEGAL: Mapping[str, Check] = MappingProxyType(
    {
        "Linear": _linear,
        "MatMul": _matmul,
        "Conv": _convolution,
        "MaxPool": _pool,
        "AvgPool": _pool,
        **dict.fromkeys(MAP_OPCODES, _elementwise),
        "Cast": _cast,
        **dict.fromkeys(("Softmax", "LogSoftmax", "LayerNorm", "RmsNorm"), _row_norm),
        "Transpose": _transpose,
        **dict.fromkeys(_VIEWS, _always_legal),
        "Pad": _pad,
        "Resize": _resize,
        "Gather": _gather,
        "GatherAxis": _gather,
        "Quantize": _check_quantised,
        "Dequantize": _check_quantised,
        **dict.fromkeys(_FUSED, _always_legal),
    }
)


# Kinds of layers whose opcode has a type family; the others copy.
_WITH_OPCODE = frozenset(
    {"linear", "matmul", "window", "pool", "map", "rows", "turn", "pad", "gather"}
)
# What a form from outside asks of its operation: what every layer of its kind does.
_OF_KIND: Mapping[str, Check] = MappingProxyType(
    {
        "linear": _linear,
        "matmul": _matmul,
        "window": _convolution,
        "pool": _pool,
        "map": _elementwise,
        "rows": _row_norm,
        "turn": _transpose,
        "pad": _pad,
        "resize": _resize,
        "gather": _gather,
        "escape": lambda candidate: "a form from outside runs it by name",
    }
)


def problem_of(
    module: Module, op: CoreOperation, lacking: Collection[str] = ()
) -> str | None:  # fmt: skip
    """Why an operation is not in the legal set; None where it is.

    `lacking` are the opcodes that the device does not have in f32.
    """
    if op.opcode == "Input" or _is_constant(op):
        return None
    check, row = LEGAL.get(op.opcode), lowering_of(op)
    is_wide = op.type.dtype == "f32" and op.opcode != "Cast"
    if row is not None and is_wide and row.kind in _WITH_OPCODE and row.nem in lacking:
        return f"it stays f32, in which the device has no `{row.nem}`"
    if row is not None and has_registered_form(op):
        check = _OF_KIND.get(row.kind, _always_legal)
    return "no unit of the device has it" if check is None else check(Candidate(module, op))


def escapes_at(precision: str, module: Module, lacking: Collection[str]) -> dict[int, str]:
    """The escapes of a plan: at i8 floats of 32 bits lie within a task, except those of masks."""
    if precision != "i8":
        return escapes(module, lacking if precision == "f16" else ())
    wide, found = mask_values(module), escapes(module, lacking)
    return {**escapes(module), **{value: found[value] for value in wide if value in found}}


def escapes(module: Module, lacking: Collection[str] = ()) -> dict[int, str]:
    """The operations that run by name on the VPU, each with its reason."""
    found = {}
    for op in module.operations:
        problem = problem_of(module, op, lacking)
        if problem is not None:
            found[op.value_id] = problem
    return found


def is_legal(module: Module, escaped: Mapping[int, str] | None = None) -> list[str]:
    """What breaks the contract; nothing where a module is legal but for what is escaped."""
    allowed = {} if escaped is None else escaped
    users: defaultdict[int, list[CoreOperation]] = defaultdict(list)
    for op in module.operations:
        for operand in op.operands:
            users[operand].append(op)
    problems = []
    for op in module.operations:
        name = f"`{op.opcode}` %{op.value_id}"
        if op.type.dtype not in _TYPES and not _is_narrowed(op, users[op.value_id]):
            problems.append(f"{name}: it is of {op.type.dtype}, which NEM does not have")
        problem = problem_of(module, op)
        if problem is not None and op.value_id not in allowed:
            problems.append(f"{name}: {problem}")
        if problem is None and op.value_id in allowed:
            problems.append(f"{name}: it is escaped, but has a form")
    return problems


def _is_narrowed(op: CoreOperation, users: list[CoreOperation]) -> bool:
    """Whether all that happens to a wide result is a cast to a narrow type."""
    is_cast = all(user.opcode == "Cast" for user in users)
    return op.opcode in FIXED_RESULTS and bool(users) and is_cast
