"""Calls that are products of matrices, attention among them."""

from __future__ import annotations

from nacre.core.aten.call import AtenCall, ConstantTensor, Tensor
from nacre.core.aten.remedies import EVAL
from nacre.core.aten.table import handles
from nacre.core.importing.products import product
from nacre.core.unsupported import Unsupported


@handles("linear.default")
def linear(call: AtenCall) -> int:
    """Rows by weights [out, in], plus a bias."""
    values = [call.value(name) for name in ("input", "weight", "bias") if call.has(name)]
    dims, weights = (call.type_of(value).shape for value in values[:2])
    if len(dims) == 1:
        values[0] = call.reshape(values[0], (1, *dims))
    if len(weights) == 1:
        values[1] = call.reshape(values[1], (1, *weights))
    product = call.add("Linear", *values)
    return call.reshape(product, (*dims[:-1], *weights[:-1]))


@handles("matmul.default", "mm.default", "bmm.default", "mv.default", "dot.default")
def matmul(call: AtenCall) -> int:
    """A product; vectors count as a row on the left and as a column on the right."""
    first, second = call.names[:2]
    return _product(call, first, second)


def _product(call: AtenCall, first: str, second: str) -> int:
    a, b = call.value(first), call.value(second)
    if not call.type_of(a).rank or not call.type_of(b).rank:
        raise Unsupported("a factor is a scalar")
    return product(call, a, b)


@handles("outer.default")
def outer(call: AtenCall) -> int:
    """Every element of the one by every element of the other."""
    dtype = call.common_type_of("self", "vec2")
    a, b = call.value("self", dtype), call.value("vec2", dtype)
    count = call.type_of(a).shape
    return call.binary("Mul", call.reshape(a, (*count, 1)), b)


@handles("addmm.default", "baddbmm.default", "addmv.default")
def addmm(call: AtenCall) -> int:
    """Beta * self + alpha * a b."""
    first, second = call.names[1:3]
    weight, is_plain = call.get(second), call.number("alpha", 1) == call.number("beta", 1) == 1
    is_layer = call.name == "addmm" and call.shape_of("self") == call.shape_of(second)[-1:]
    if isinstance(weight, ConstantTensor) and is_layer and is_plain:
        turned = call.as_value(weight.transpose())
        return call.add("Linear", call.value(first), turned, call.value("self"))
    product = scale(call, _product(call, first, second), "alpha")
    if call.number("beta", 1) == 0:
        return product
    return call.binary("Add", scale(call, call.value("self"), "beta"), product)


def scale(call: AtenCall, value: int, name: str) -> int:
    """A value times the number that an argument is."""
    factor = call.number(name, 1)
    if factor == 1:
        return value
    return call.binary("Mul", value, call.scalar(factor, call.type_of(value).dtype))


@handles("einsum.default")
def einsum(call: AtenCall) -> int:
    """Sums of products over named axes."""
    values = [call.as_value(tensor) for tensor in call.get("tensors", ())]
    return call.add("Einsum", *values, equation=str(call.get("equation")).replace(" ", ""))


@handles("scaled_dot_product_attention.default")
def attention(call: AtenCall) -> int:
    """softmax(q k' * scale + mask) v; key heads are repeated where there are fewer."""
    return _add_attention(call, call.get("attn_mask"))


@handles("_scaled_dot_product_flash_attention_for_cpu.default",
         "_scaled_dot_product_efficient_attention.default")  # fmt: skip
def kernel_attention(call: AtenCall) -> list[int]:
    """The same as one of PyTorch's kernels has it; only its first result has a form."""
    return [_add_attention(call, call.get("attn_mask", call.get("attn_bias")))]


def _add_attention(call: AtenCall, mask: Tensor | None) -> int:
    if call.number("dropout_p", 0.0) > 0:
        raise Unsupported("`dropout_p` is not 0; Core IR has no random numbers", EVAL)
    q, k, v = (call.value(name) for name in ("query", "key", "value"))
    heads = call.type_of(q).shape
    if call.get("enable_gqa", False):
        k, v = (_repeat_heads(call, x, heads[-3]) for x in (k, v))
    given: dict[str, object] = {"causal": bool(call.get("is_causal", False))}
    if call.has("scale"):
        given["scale"] = float(call.number("scale"))
        if given["scale"] == 0:
            raise Unsupported("`scale` is 0", "take the mean of the values")
    values = [q, k, v]
    if mask is not None:
        taken = call.as_value(mask)
        if call.type_of(taken).dtype != "bool":
            taken = call.cast(taken, call.type_of(q).dtype)
        values.append(taken)
    return call.add("Attention", *values, **given)


def _repeat_heads(call: AtenCall, value: int, heads: int) -> int:
    """Each head so often that there are as many as of queries."""
    dims = call.type_of(value).shape
    own = dims[-3]
    if own == heads:
        return value
    if heads % own:
        raise Unsupported(f"{own} heads of keys for {heads} of queries")
    new = (*dims[:-2], 1, *dims[-2:])
    wide = (*dims[:-2], heads // own, *dims[-2:])
    repeated = call.broadcast_to(call.reshape(value, new), wide)
    return call.reshape(repeated, (*dims[:-3], heads, *dims[-2:]))
