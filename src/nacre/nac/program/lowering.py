"""What each operation of Core IR becomes in a file: the inverse of the handlers.

A row says the call and its arguments for one operation, or None where no call computes exactly
that: the operation then keeps its own name, `core.NAME`. A handler makes of the call the very
operation that it was; a test holds every row against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.dtypes import WORDS_OF_DTYPES
from nacre.core.module import CoreOperation, TensorType
from nacre.core.ops import OPS
from nacre.nac.program.calls import attribute_constant


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of the operation, by its place."""

    place: int


Argument = Any  # an Operand, a tuple of them for a list of tensors, or a constant
Form = tuple[str, tuple[Argument, ...]]  # the call, its arguments in the order of its schema


@dataclass(frozen=True, slots=True)
class LoweringSite:
    """An operation with the types of its operands."""

    op: CoreOperation
    types: tuple[TensorType, ...]

    def get(self, name: str) -> Any:  # noqa: ANN401 - whatever an attribute holds
        """An attribute, its default where it is left out."""
        return OPS[self.op.opcode].filled(self.op.attributes).get(name)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands in order."""
        return tuple(Operand(place) for place in range(len(self.types)))

    def optional(self, place: int) -> Operand | None:
        """An operand that may be left out."""
        return Operand(place) if place < len(self.types) else None

    @property
    def rank(self) -> int:
        """The rank of the first operand."""
        return self.types[0].rank

    @property
    def is_float(self) -> bool:
        """Whether the first operand has floats."""
        return GRAPH_TYPES[self.types[0].dtype].kind == "float"

    def has_plain_axes(self, name: str = "axes") -> bool:
        """Whether axes are counted from the front, in order, and there is one."""
        axes = self.get(name)
        found = axes if isinstance(axes, tuple) else (axes,)
        return bool(found) and list(found) == sorted(set(found)) and min(found) >= 0


Rule = Callable[[LoweringSite], Form | None]


def _plain(call: str, *attributes: str) -> Rule:
    """A call of the operands and then of some attributes."""
    return lambda use: (call, (*use.operands, *(use.get(name) for name in attributes)))


def _binary(use: LoweringSite) -> Form | None:
    op, is_float = use.get("op"), use.is_float
    if op in ("Add", "Sub"):
        return f"{op.lower()}.Tensor", (*use.operands, 1)
    if op == "Div" and not is_float:
        return "div.Tensor_mode", (*use.operands, "trunc")
    return OPS["BinOp"].aten[op][0], use.operands


def _unary(use: LoweringSite) -> Form | None:
    calls = OPS["Unary"].aten[use.get("op")]
    if len(calls) > 1:
        return None
    if use.get("op") == "Softplus":
        return ("softplus.default", (Operand(0), 1, 20)) if use.types[0].dtype != "f64" else None
    return calls[0], use.operands


def _elu(use: LoweringSite) -> Form | None:
    gamma = float(use.get("gamma")) if use.op.opcode == "Selu" else 1.0
    if use.op.opcode == "Selu" and gamma == 1.0:
        return None
    return "elu.default", (Operand(0), float(use.get("alpha")), gamma, 1.0)


def _hard_sigmoid(use: LoweringSite) -> Form | None:
    is_atens = (use.get("alpha"), use.get("beta")) == (1 / 6, 0.5)
    return ("hardsigmoid.default", use.operands) if is_atens else None


def _clip(use: LoweringSite) -> Form | None:
    if not use.is_float:
        return None
    ends = [use.op.attributes.get(name) for name in ("min", "max")]
    return "clamp.default", (Operand(0), *ends) if any(e is not None for e in ends) else (
        Operand(0),
    )


def _cast(use: LoweringSite) -> Form | None:
    target = str(use.get("to"))
    is_exact = target in WORDS_OF_DTYPES and target not in ("bool", use.types[0].dtype)
    if use.get("saturate") or not is_exact:
        return None
    return "_to_copy.default", (Operand(0), WORDS_OF_DTYPES[target])


def _own_word(use: LoweringSite) -> str | None:
    """The word that keeps a sum of integers in their type."""
    return None if use.is_float else WORDS_OF_DTYPES.get(use.types[0].dtype)


def _sum(use: LoweringSite) -> Form | None:
    is_plain = use.rank and use.has_plain_axes()
    if not is_plain or (not use.is_float and _own_word(use) is None):
        return None
    return "sum.dim_IntList", (Operand(0), use.get("axes"), use.get("keepdims"), _own_word(use))


def _mean(use: LoweringSite) -> Form | None:
    if not use.rank or not use.has_plain_axes() or not use.is_float:
        return None
    return "mean.dim", (Operand(0), use.get("axes"), use.get("keepdims"), None)


_REDUCTIONS = {"Max": "amax.default", "Min": "amin.default", "LogSumExp": "logsumexp.default",
               "Any": "any.dims", "All": "all.dims"}  # fmt: skip
_NORMS = {"L1": 1, "L2": 2}


def _reduce(use: LoweringSite) -> Form | None:
    op, axes, keepdims = use.get("op"), use.get("axes"), use.get("keepdims")
    if not use.rank or not use.has_plain_axes():
        return None
    if op in _REDUCTIONS:
        return _REDUCTIONS[op], (Operand(0), axes, keepdims)
    if op in _NORMS and use.is_float:
        return "linalg_vector_norm.default", (Operand(0), _NORMS[op], axes, keepdims, None)
    if op == "Prod" and len(axes) == 1 and use.is_float:
        return "prod.dim_int", (Operand(0), axes[0], keepdims, None)
    return None


def _argument(use: LoweringSite) -> Form | None:
    if use.get("last") or not use.has_plain_axes("axis"):
        return None
    call = f"{use.op.opcode.lower()}.default"
    return call, (Operand(0), use.get("axis"), use.get("keepdims"))


def _cumulative(use: LoweringSite) -> Form | None:
    is_atens = not use.get("exclusive") and not use.get("reverse") and use.rank
    word = _own_word(use)
    if not is_atens or not use.has_plain_axes("axis") or (not use.is_float and word is None):
        return None
    return f"{use.op.opcode.lower()}.default", (Operand(0), use.get("axis"), word)


def _reshape(use: LoweringSite) -> Form | None:
    shape = use.get("new_shape")
    return ("view.default", (Operand(0), shape)) if shape != use.types[0].shape else None


def _expand_dims(use: LoweringSite) -> Form | None:
    axes = use.get("axes")
    is_one = len(axes) == 1 and axes[0] >= 0
    return ("unsqueeze.default", (Operand(0), axes[0])) if is_one else None


def _squeeze(use: LoweringSite) -> Form | None:
    return ("squeeze.dims", (Operand(0), use.get("axes"))) if use.has_plain_axes() else None


def _permute(use: LoweringSite) -> Form | None:
    order = use.get("permutation")
    is_moved = list(order) != sorted(order) and min(order, default=0) >= 0
    return ("permute.default", (Operand(0), order)) if is_moved else None


def _slice(use: LoweringSite) -> Form | None:
    """One axis at a time is what ATen cuts."""
    parts = list(zip(use.get("starts"), use.get("ends"), use.get("steps"), strict=True))
    dims = use.types[0].shape
    cut = [axis for axis, dim in enumerate(dims) if parts[axis] != (0, dim, 1)]
    if len(cut) != 1:
        return None
    start, end, step = parts[cut[0]]
    is_inside = 0 <= start < end <= dims[cut[0]] and step > 0
    return ("slice.Tensor", (Operand(0), cut[0], start, end, step)) if is_inside else None


def _matmul(use: LoweringSite) -> Form | None:
    is_atens = all(type_.rank >= 2 for type_ in use.types)
    return ("matmul.default", use.operands) if is_atens else None


def _linear(use: LoweringSite) -> Form | None:
    is_atens = use.rank >= 2 and use.types[1].rank == 2
    call = (Operand(0), Operand(1), use.optional(2))
    return ("linear.default", call) if is_atens else None


def _attention(use: LoweringSite) -> Form | None:
    scale = use.op.attributes.get("scale")
    if scale == 0.0:
        return None
    q, k, v = use.operands[:3]
    call = (q, k, v, use.optional(3), 0.0, bool(use.get("causal")), scale, False)
    has_own_mask = len(use.types) < 4 or use.types[3].dtype in ("bool", use.types[0].dtype)
    return ("scaled_dot_product_attention.default", call) if has_own_mask else None


def _windows(use: LoweringSite, rank: int) -> tuple[tuple[int, ...], ...] | None:
    """Strides, pads and dilations as ATen has them: channels first, pads alike at both ends."""
    pads = use.get("pads") or (0,) * (2 * rank)
    if use.get("layout") != "NCHW" or pads[:rank] != pads[rank:]:
        return None
    ones = (1,) * rank
    return use.get("strides") or ones, pads[:rank], use.get("dilations") or ones


def _conv(use: LoweringSite) -> Form | None:
    rank = use.rank - 2
    found = _windows(use, rank)
    if found is None:
        return None
    is_back = use.op.opcode == "ConvTranspose"
    extra = use.get("output_padding") or (0,) * rank if is_back else (0,) * rank
    call = (Operand(0), Operand(1), use.optional(2), *found, is_back, extra, use.get("groups"))
    return "convolution.default", call


def _pool(use: LoweringSite) -> Form | None:
    rank = use.rank - 2
    found = _windows(use, rank)
    if found is None or rank not in (1, 2, 3):
        return None
    strides, pads, dilations = found
    kernel, ceil = use.get("kernel"), bool(use.get("ceil"))
    if use.op.opcode == "MaxPool":
        return f"max_pool{rank}d.default", (Operand(0), kernel, strides, pads, dilations, ceil)
    if set(dilations) != {1}:
        return None
    last = (None,) if rank > 1 else ()
    count = bool(use.get("count_pad"))
    return f"avg_pool{rank}d.default", (Operand(0), kernel, strides, pads, ceil, count, *last)


def _softmax(use: LoweringSite) -> Form | None:
    call = "_softmax.default" if use.op.opcode == "Softmax" else "_log_softmax.default"
    return (call, (Operand(0), use.get("axis"), False)) if use.has_plain_axes("axis") else None


def _layer_norm(use: LoweringSite) -> Form | None:
    if not use.has_plain_axes("axis"):
        return None
    shape = use.types[0].shape[use.get("axis") :]
    head = (Operand(0), shape, use.optional(1))
    if use.op.opcode == "RmsNorm":
        return "rms_norm.default", (*head, use.get("epsilon"))
    return "layer_norm.default", (*head, use.optional(2), use.get("epsilon"), False)


def _group_norm(use: LoweringSite) -> Form | None:
    call = (Operand(0), use.get("groups"), use.optional(1), use.optional(2))
    return "group_norm.default", (*call, use.get("epsilon"), False)


def _instance_norm(use: LoweringSite) -> Form | None:
    call = (Operand(0), use.optional(1), use.optional(2), None, None, True, 0.0)
    return "instance_norm.default", (*call, use.get("epsilon"), False)


def _batch_norm(use: LoweringSite) -> Form | None:
    call = (*use.operands, False, 0.0, use.get("epsilon"), False)
    return ("batch_norm.default", call) if use.get("axis") == 1 else None


def _pad(use: LoweringSite) -> Form | None:
    """Pairs, those of the last axis first."""
    if use.get("mode") != "constant" or not any(use.get("pads")):
        return None
    pads, rank = use.get("pads"), use.rank
    pairs = tuple(p for axis in reversed(range(rank)) for p in (pads[axis], pads[rank + axis]))
    return "constant_pad_nd.default", (Operand(0), pairs, float(use.get("value")))


def _gather_axis(use: LoweringSite) -> Form | None:
    axis = use.get("axis")
    if axis < 0 or use.types[1].dtype not in ("i32", "i64"):
        return None
    return "index.Tensor", (Operand(0), (*[None] * axis, Operand(1)))


def _gather_elements(use: LoweringSite) -> Form | None:
    axis, dims, reach = use.get("axis"), use.types[0].shape, use.types[1].shape
    is_whole = all(a == axis or reach[a] == dims[a] for a in range(len(dims)))
    return ("gather.default", (Operand(0), axis, Operand(1), False)) if (
        axis >= 0 and is_whole) else None  # fmt: skip


def _tile(use: LoweringSite) -> Form | None:
    repeats = use.get("repeats")
    return ("repeat.default", (Operand(0), repeats)) if set(repeats) != {1} else None


def _concat(use: LoweringSite) -> Form | None:
    is_several = len(use.types) > 1 and use.get("axis") >= 0
    return ("cat.default", (use.operands, use.get("axis"))) if is_several else None


def _triangle(use: LoweringSite) -> Form | None:
    return ("triu.default" if use.get("upper") else "tril.default"), (Operand(0), use.get("k"))


LOWERINGS: Mapping[str, Rule] = MappingProxyType(
    {
        "BinOp": _binary, "Unary": _unary, "Where": _plain("where.self"),
        "Compare": lambda use: (OPS["Compare"].aten[use.get("op")][0], use.operands),
        "Neg": _plain("neg.default"), "Exp": lambda u: ("exp.default", u.operands),
        "Log": _plain("log.default"), "ReluNan": _plain("relu.default"),
        "HardSwish": _plain("hardswish.default"), "Silu": _plain("silu.default"),
        "Gelu": _plain("gelu.default", "approximate"),
        "LeakyRelu": _plain("leaky_relu.default", "alpha"), "Elu": _elu, "Selu": _elu,
        "HardSigmoid": _hard_sigmoid, "Clip": _clip, "PRelu": _plain("_prelu_kernel.default"),
        "Cast": _cast, "Sum": _sum, "Mean": _mean, "Reduce": _reduce, "ArgMax": _argument,
        "ArgMin": _argument, "CumSum": _cumulative, "CumProd": _cumulative,
        "Reshape": _reshape, "ExpandDims": _expand_dims, "Squeeze": _squeeze,
        "Transpose": _permute, "Slice": _slice, "MatMul": _matmul, "Linear": _linear,
        "Gather": lambda use: ("embedding.default", (*use.operands, -1, False, False)),
        "Attention": _attention, "Conv": _conv, "ConvTranspose": _conv, "MaxPool": _pool,
        "AvgPool": _pool, "Softmax": _softmax, "LogSoftmax": _softmax, "LayerNorm": _layer_norm,
        "RmsNorm": _layer_norm, "GroupNorm": _group_norm, "InstanceNorm": _instance_norm,
        "BatchNorm": _batch_norm, "Broadcast": _plain("expand.default", "shape"),
        "Concat": _concat, "Pad": _pad, "Flip": _plain("flip.default", "axes"), "Tile": _tile,
        "GatherAxis": _gather_axis, "GatherElements": _gather_elements, "Trilu": _triangle,
        "Einsum": lambda use: ("einsum.default", (use.get("equation"), use.operands, None)),
    }
)  # fmt: skip


def lower_operation(op: CoreOperation, types: tuple[TensorType, ...]) -> Form:
    """The call that computes an operation, and its arguments; its own name where there is none."""
    use = LoweringSite(op, types)
    rule = LOWERINGS.get(op.opcode)
    form = rule(use) if rule is not None else None
    call, arguments = form if form is not None else _own(use)
    return call, tuple(str(a) if isinstance(a, str) else a for a in arguments)  # words too


def _own(use: LoweringSite) -> Form:
    spec = OPS[use.op.opcode]
    operands: tuple[Argument, ...] = use.operands
    if spec.most is None:
        operands = (use.operands,)
    else:
        operands = (*operands, *[None] * (len(spec.operands) - len(operands)))
    given = (attribute_constant(a, use.get(a.name)) for a in spec.attributes)
    return f"core.{use.op.opcode}", (*operands, *given)
