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
        return OPS[self.op.opcode].with_defaults(self.op.attributes).get(name)

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


def _direct(call: str, *attributes: str) -> Rule:
    """A call of the operands and then of some attributes."""
    return lambda site: (call, (*site.operands, *(site.get(name) for name in attributes)))


def _binary(site: LoweringSite) -> Form | None:
    op, is_float = site.get("op"), site.is_float
    if op in ("Add", "Sub"):
        return f"{op.lower()}.Tensor", (*site.operands, 1)
    if op == "Div" and not is_float:
        return "div.Tensor_mode", (*site.operands, "trunc")
    return OPS["BinOp"].aten[op][0], site.operands


def _unary(site: LoweringSite) -> Form | None:
    calls = OPS["Unary"].aten[site.get("op")]
    if len(calls) > 1:
        return None
    if site.get("op") == "Softplus":
        return ("softplus.default", (Operand(0), 1, 20)) if site.types[0].dtype != "f64" else None
    return calls[0], site.operands


def _elu(site: LoweringSite) -> Form | None:
    gamma = float(site.get("gamma")) if site.op.opcode == "Selu" else 1.0
    if site.op.opcode == "Selu" and gamma == 1.0:
        return None
    return "elu.default", (Operand(0), float(site.get("alpha")), gamma, 1.0)


def _hard_sigmoid(site: LoweringSite) -> Form | None:
    is_atens = (site.get("alpha"), site.get("beta")) == (1 / 6, 0.5)
    return ("hardsigmoid.default", site.operands) if is_atens else None


def _clip(site: LoweringSite) -> Form | None:
    if not site.is_float:
        return None
    ends = [site.op.attributes.get(name) for name in ("min", "max")]
    return "clamp.default", (Operand(0), *ends) if any(e is not None for e in ends) else (
        Operand(0),
    )


def _cast(site: LoweringSite) -> Form | None:
    target = str(site.get("to"))
    is_exact = target in WORDS_OF_DTYPES and target not in ("bool", site.types[0].dtype)
    if site.get("saturate") or not is_exact:
        return None
    return "_to_copy.default", (Operand(0), WORDS_OF_DTYPES[target])


def _integer_dtype_word(site: LoweringSite) -> str | None:
    """The word that keeps a sum of integers in their type."""
    return None if site.is_float else WORDS_OF_DTYPES.get(site.types[0].dtype)


def _sum(site: LoweringSite) -> Form | None:
    is_plain = site.rank and site.has_plain_axes()
    if not is_plain or (not site.is_float and _integer_dtype_word(site) is None):
        return None
    return "sum.dim_IntList", (
        Operand(0),
        site.get("axes"),
        site.get("keepdims"),
        _integer_dtype_word(site),
    )


def _mean(site: LoweringSite) -> Form | None:
    if not site.rank or not site.has_plain_axes() or not site.is_float:
        return None
    return "mean.dim", (Operand(0), site.get("axes"), site.get("keepdims"), None)


_REDUCTIONS = {"Max": "amax.default", "Min": "amin.default", "LogSumExp": "logsumexp.default",
               "Any": "any.dims", "All": "all.dims"}  # fmt: skip
_NORMS = {"L1": 1, "L2": 2}


def _reduce(site: LoweringSite) -> Form | None:
    op, axes, keepdims = site.get("op"), site.get("axes"), site.get("keepdims")
    if not site.rank or not site.has_plain_axes():
        return None
    if op in _REDUCTIONS:
        return _REDUCTIONS[op], (Operand(0), axes, keepdims)
    if op in _NORMS and site.is_float:
        return "linalg_vector_norm.default", (Operand(0), _NORMS[op], axes, keepdims, None)
    if op == "Prod" and len(axes) == 1 and site.is_float:
        return "prod.dim_int", (Operand(0), axes[0], keepdims, None)
    return None


def _arg_extremum(site: LoweringSite) -> Form | None:
    if site.get("last") or not site.has_plain_axes("axis"):
        return None
    call = f"{site.op.opcode.lower()}.default"
    return call, (Operand(0), site.get("axis"), site.get("keepdims"))


def _cumulative(site: LoweringSite) -> Form | None:
    is_atens = not site.get("exclusive") and not site.get("reverse") and site.rank
    word = _integer_dtype_word(site)
    if not is_atens or not site.has_plain_axes("axis") or (not site.is_float and word is None):
        return None
    return f"{site.op.opcode.lower()}.default", (Operand(0), site.get("axis"), word)


def _reshape(site: LoweringSite) -> Form | None:
    shape = site.get("new_shape")
    return ("view.default", (Operand(0), shape)) if shape != site.types[0].shape else None


def _expand_dims(site: LoweringSite) -> Form | None:
    axes = site.get("axes")
    is_one = len(axes) == 1 and axes[0] >= 0
    return ("unsqueeze.default", (Operand(0), axes[0])) if is_one else None


def _squeeze(site: LoweringSite) -> Form | None:
    return ("squeeze.dims", (Operand(0), site.get("axes"))) if site.has_plain_axes() else None


def _permute(site: LoweringSite) -> Form | None:
    order = site.get("permutation")
    is_moved = list(order) != sorted(order) and min(order, default=0) >= 0
    return ("permute.default", (Operand(0), order)) if is_moved else None


def _slice(site: LoweringSite) -> Form | None:
    """One axis at a time is what ATen cuts."""
    parts = list(zip(site.get("starts"), site.get("ends"), site.get("steps"), strict=True))
    dims = site.types[0].shape
    cut = [axis for axis, dim in enumerate(dims) if parts[axis] != (0, dim, 1)]
    if len(cut) != 1:
        return None
    start, end, step = parts[cut[0]]
    is_inside = 0 <= start < end <= dims[cut[0]] and step > 0
    return ("slice.Tensor", (Operand(0), cut[0], start, end, step)) if is_inside else None


def _matmul(site: LoweringSite) -> Form | None:
    is_atens = all(type_.rank >= 2 for type_ in site.types)
    return ("matmul.default", site.operands) if is_atens else None


def _linear(site: LoweringSite) -> Form | None:
    is_atens = site.rank >= 2 and site.types[1].rank == 2
    call = (Operand(0), Operand(1), site.optional(2))
    return ("linear.default", call) if is_atens else None


def _attention(site: LoweringSite) -> Form | None:
    scale = site.op.attributes.get("scale")
    if scale == 0.0:
        return None
    q, k, v = site.operands[:3]
    call = (q, k, v, site.optional(3), 0.0, bool(site.get("causal")), scale, False)
    has_own_mask = len(site.types) < 4 or site.types[3].dtype in ("bool", site.types[0].dtype)
    return ("scaled_dot_product_attention.default", call) if has_own_mask else None


def _windows(site: LoweringSite, rank: int) -> tuple[tuple[int, ...], ...] | None:
    """Strides, pads and dilations as ATen has them: channels first, pads alike at both ends."""
    pads = site.get("pads") or (0,) * (2 * rank)
    if site.get("layout") != "NCHW" or pads[:rank] != pads[rank:]:
        return None
    ones = (1,) * rank
    return site.get("strides") or ones, pads[:rank], site.get("dilations") or ones


def _conv(site: LoweringSite) -> Form | None:
    rank = site.rank - 2
    windows = _windows(site, rank)
    if windows is None:
        return None
    is_back = site.op.opcode == "ConvTranspose"
    extra = site.get("output_padding") or (0,) * rank if is_back else (0,) * rank
    call = (Operand(0), Operand(1), site.optional(2), *windows, is_back, extra, site.get("groups"))
    return "convolution.default", call


def _pool(site: LoweringSite) -> Form | None:
    rank = site.rank - 2
    windows = _windows(site, rank)
    if windows is None or rank not in (1, 2, 3):
        return None
    strides, pads, dilations = windows
    kernel, ceil = site.get("kernel"), bool(site.get("ceil"))
    if site.op.opcode == "MaxPool":
        return f"max_pool{rank}d.default", (Operand(0), kernel, strides, pads, dilations, ceil)
    if set(dilations) != {1}:
        return None
    last = (None,) if rank > 1 else ()
    count = bool(site.get("count_pad"))
    return f"avg_pool{rank}d.default", (Operand(0), kernel, strides, pads, ceil, count, *last)


def _softmax(site: LoweringSite) -> Form | None:
    call = "_softmax.default" if site.op.opcode == "Softmax" else "_log_softmax.default"
    return (call, (Operand(0), site.get("axis"), False)) if site.has_plain_axes("axis") else None


def _layer_norm(site: LoweringSite) -> Form | None:
    if not site.has_plain_axes("axis"):
        return None
    shape = site.types[0].shape[site.get("axis") :]
    head = (Operand(0), shape, site.optional(1))
    if site.op.opcode == "RmsNorm":
        return "rms_norm.default", (*head, site.get("epsilon"))
    return "layer_norm.default", (*head, site.optional(2), site.get("epsilon"), False)


def _group_norm(site: LoweringSite) -> Form | None:
    call = (Operand(0), site.get("groups"), site.optional(1), site.optional(2))
    return "group_norm.default", (*call, site.get("epsilon"), False)


def _instance_norm(site: LoweringSite) -> Form | None:
    call = (Operand(0), site.optional(1), site.optional(2), None, None, True, 0.0)
    return "instance_norm.default", (*call, site.get("epsilon"), False)


def _batch_norm(site: LoweringSite) -> Form | None:
    call = (*site.operands, False, 0.0, site.get("epsilon"), False)
    return ("batch_norm.default", call) if site.get("axis") == 1 else None


def _pad(site: LoweringSite) -> Form | None:
    """Pairs, those of the last axis first."""
    if site.get("mode") != "constant" or not any(site.get("pads")):
        return None
    pads, rank = site.get("pads"), site.rank
    pairs = tuple(p for axis in reversed(range(rank)) for p in (pads[axis], pads[rank + axis]))
    return "constant_pad_nd.default", (Operand(0), pairs, float(site.get("value")))


def _gather_axis(site: LoweringSite) -> Form | None:
    axis = site.get("axis")
    if axis < 0 or site.types[1].dtype not in ("i32", "i64"):
        return None
    return "index.Tensor", (Operand(0), (*[None] * axis, Operand(1)))


def _gather_elements(site: LoweringSite) -> Form | None:
    axis, dims, reach = site.get("axis"), site.types[0].shape, site.types[1].shape
    is_whole = all(a == axis or reach[a] == dims[a] for a in range(len(dims)))
    return ("gather.default", (Operand(0), axis, Operand(1), False)) if (
        axis >= 0 and is_whole) else None  # fmt: skip


def _tile(site: LoweringSite) -> Form | None:
    repeats = site.get("repeats")
    return ("repeat.default", (Operand(0), repeats)) if set(repeats) != {1} else None


def _concat(site: LoweringSite) -> Form | None:
    is_several = len(site.types) > 1 and site.get("axis") >= 0
    return ("cat.default", (site.operands, site.get("axis"))) if is_several else None


def _triangle(site: LoweringSite) -> Form | None:
    return ("triu.default" if site.get("upper") else "tril.default"), (Operand(0), site.get("k"))


LOWERINGS: Mapping[str, Rule] = MappingProxyType(
    {
        "BinOp": _binary, "Unary": _unary, "Where": _direct("where.self"),
        "Compare": lambda site: (OPS["Compare"].aten[site.get("op")][0], site.operands),
        "Neg": _direct("neg.default"), "Exp": lambda u: ("exp.default", u.operands),
        "Log": _direct("log.default"), "ReluNan": _direct("relu.default"),
        "HardSwish": _direct("hardswish.default"), "Silu": _direct("silu.default"),
        "Gelu": _direct("gelu.default", "approximate"),
        "LeakyRelu": _direct("leaky_relu.default", "alpha"), "Elu": _elu, "Selu": _elu,
        "HardSigmoid": _hard_sigmoid, "Clip": _clip, "PRelu": _direct("_prelu_kernel.default"),
        "Cast": _cast, "Sum": _sum, "Mean": _mean, "Reduce": _reduce, "ArgMax": _arg_extremum,
        "ArgMin": _arg_extremum, "CumSum": _cumulative, "CumProd": _cumulative,
        "Reshape": _reshape, "ExpandDims": _expand_dims, "Squeeze": _squeeze,
        "Transpose": _permute, "Slice": _slice, "MatMul": _matmul, "Linear": _linear,
        "Gather": lambda site: ("embedding.default", (*site.operands, -1, False, False)),
        "Attention": _attention, "Conv": _conv, "ConvTranspose": _conv, "MaxPool": _pool,
        "AvgPool": _pool, "Softmax": _softmax, "LogSoftmax": _softmax, "LayerNorm": _layer_norm,
        "RmsNorm": _layer_norm, "GroupNorm": _group_norm, "InstanceNorm": _instance_norm,
        "BatchNorm": _batch_norm, "Broadcast": _direct("expand.default", "shape"),
        "Concat": _concat, "Pad": _pad, "Flip": _direct("flip.default", "axes"), "Tile": _tile,
        "GatherAxis": _gather_axis, "GatherElements": _gather_elements, "Trilu": _triangle,
        "Einsum": lambda site: ("einsum.default", (site.get("equation"), site.operands, None)),
    }
)  # fmt: skip


def lower_operation(op: CoreOperation, types: tuple[TensorType, ...]) -> Form:
    """The call that computes an operation, and its arguments; its own name where there is none."""
    site = LoweringSite(op, types)
    rule = LOWERINGS.get(op.opcode)
    form = rule(site) if rule is not None else None
    call, arguments = form if form is not None else _core_call(site)
    return call, tuple(str(a) if isinstance(a, str) else a for a in arguments)  # words too


def _core_call(site: LoweringSite) -> Form:
    spec = OPS[site.op.opcode]
    operands: tuple[Argument, ...] = site.operands
    if spec.most is None:
        operands = (site.operands,)
    else:
        operands = (*operands, *[None] * (len(spec.operands) - len(operands)))
    given = (attribute_constant(a, site.get(a.name)) for a in spec.attributes)
    return f"core.{site.op.opcode}", (*operands, *given)
