"""Calls that are products of matrices, attention among them."""

from __future__ import annotations

from nacre.core.aten.call import AtenCall, Known, Tensor
from nacre.core.aten.remedies import EVAL
from nacre.core.aten.table import handles
from nacre.core.importing.products import product
from nacre.core.unsupported import Unsupported


@handles("linear.default")
def linear(use: AtenCall) -> int:
    """Rows by weights [out, in], plus a bias."""
    values = [use.value(name) for name in ("input", "weight", "bias") if use.has(name)]
    dims, weights = (use.type_of(value).shape for value in values[:2])
    if len(dims) == 1:
        values[0] = use.reshape(values[0], (1, *dims))
    if len(weights) == 1:
        values[1] = use.reshape(values[1], (1, *weights))
    made = use.add("Linear", *values)
    return use.reshape(made, (*dims[:-1], *weights[:-1]))


@handles("matmul.default", "mm.default", "bmm.default", "mv.default", "dot.default")
def matmul(use: AtenCall) -> int:
    """A product; vectors count as a row on the left and as a column on the right."""
    first, second = use.names[:2]
    return _product(use, first, second)


def _product(use: AtenCall, first: str, second: str) -> int:
    a, b = use.value(first), use.value(second)
    if not use.type_of(a).rank or not use.type_of(b).rank:
        raise Unsupported("a factor is a scalar")
    return product(use, a, b)


@handles("outer.default")
def outer(use: AtenCall) -> int:
    """Every element of the one by every element of the other."""
    dtype = use.common("self", "vec2")
    a, b = use.value("self", dtype), use.value("vec2", dtype)
    count = use.type_of(a).shape
    return use.binary("Mul", use.reshape(a, (*count, 1)), b)


@handles("addmm.default", "baddbmm.default", "addmv.default")
def addmm(use: AtenCall) -> int:
    """Beta * self + alpha * a b."""
    first, second = use.names[1:3]
    weight, is_plain = use.get(second), use.number("alpha", 1) == use.number("beta", 1) == 1
    is_layer = use.name == "addmm" and use.shape_of("self") == use.shape_of(second)[-1:]
    if isinstance(weight, Known) and is_layer and is_plain:
        turned = use.as_value(weight.transpose())
        return use.add("Linear", use.value(first), turned, use.value("self"))
    made = scale(use, _product(use, first, second), "alpha")
    if use.number("beta", 1) == 0:
        return made
    return use.binary("Add", scale(use, use.value("self"), "beta"), made)


def scale(use: AtenCall, value: int, name: str) -> int:
    """A value times the number that an argument is."""
    factor = use.number(name, 1)
    if factor == 1:
        return value
    return use.binary("Mul", value, use.scalar(factor, use.type_of(value).dtype))


@handles("einsum.default")
def einsum(use: AtenCall) -> int:
    """Sums of products over named axes."""
    values = [use.as_value(tensor) for tensor in use.get("tensors", ())]
    return use.add("Einsum", *values, equation=str(use.get("equation")).replace(" ", ""))


@handles("scaled_dot_product_attention.default")
def attention(use: AtenCall) -> int:
    """softmax(q k' * scale + mask) v; key heads are repeated where there are fewer."""
    return _add_attention(use, use.get("attn_mask"))


@handles("_scaled_dot_product_flash_attention_for_cpu.default",
         "_scaled_dot_product_efficient_attention.default")  # fmt: skip
def kernel_attention(use: AtenCall) -> list[int]:
    """The same as one of PyTorch's kernels has it; only its first result has a form."""
    return [_add_attention(use, use.get("attn_mask", use.get("attn_bias")))]


def _add_attention(use: AtenCall, mask: Tensor | None) -> int:
    if use.number("dropout_p", 0.0) > 0:
        raise Unsupported("`dropout_p` is not 0; Core IR has no random numbers", EVAL)
    q, k, v = (use.value(name) for name in ("query", "key", "value"))
    heads = use.type_of(q).shape
    if use.get("enable_gqa", False):
        k, v = (_repeat_heads(use, x, heads[-3]) for x in (k, v))
    given: dict[str, object] = {"causal": bool(use.get("is_causal", False))}
    if use.has("scale"):
        given["scale"] = float(use.number("scale"))
        if given["scale"] == 0:
            raise Unsupported("`scale` is 0", "take the mean of the values")
    values = [q, k, v]
    if mask is not None:
        taken = use.as_value(mask)
        if use.type_of(taken).dtype != "bool":
            taken = use.cast(taken, use.type_of(q).dtype)
        values.append(taken)
    return use.add("Attention", *values, **given)


def _repeat_heads(use: AtenCall, value: int, heads: int) -> int:
    """Each head so often that there are as many as of queries."""
    dims = use.type_of(value).shape
    own = dims[-3]
    if own == heads:
        return value
    if heads % own:
        raise Unsupported(f"{own} heads of keys for {heads} of queries")
    new = (*dims[:-2], 1, *dims[-2:])
    wide = (*dims[:-2], heads // own, *dims[-2:])
    made = use.broadcast_to(use.reshape(value, new), wide)
    return use.reshape(made, (*dims[:-3], heads, *dims[-2:]))
