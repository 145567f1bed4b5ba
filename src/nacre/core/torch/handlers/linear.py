"""Operations of ATen that are products of matrices, attention among them."""

from __future__ import annotations

from nacre.core.torch.handlers.table import handles
from nacre.core.torch.remedies import EVAL
from nacre.core.torch.use import AtenCall
from nacre.core.unsupported import Unsupported


@handles("linear.default")
def linear(use: AtenCall) -> int:
    """Rows by weights [out, in], plus a bias."""
    names = ("input", "weight", "bias")
    values = [use.value(name) for name in names if use.has(name)]
    dims = use.type_of(values[0]).shape
    if len(dims) == 1:
        values[0] = use.reshaped(values[0], (1, *dims))
    if use.type_of(values[1]).rank == 1:
        values[1] = use.reshaped(values[1], (1, *use.type_of(values[1]).shape))
    return use.reshaped(use.add("Linear", *values), use.shape)


@handles("matmul.default", "mm.default", "bmm.default", "mv.default", "dot.default")
def matmul(use: AtenCall) -> int:
    """A product; vectors count as a row on the left and as a column on the right."""
    first, second = use.names[:2]
    a, b = use.value(first), use.value(second)
    a_dims, b_dims = use.shape_of(first), use.shape_of(second)
    left = use.reshaped(a, (1, *a_dims)) if len(a_dims) == 1 else a
    right = use.reshaped(b, (*b_dims, 1)) if len(b_dims) == 1 else b
    return use.reshaped(use.add("MatMul", left, right), use.shape)


@handles("addmm.default", "baddbmm.default", "addmv.default")
def addmm(use: AtenCall) -> int:
    """Beta * self + alpha * a b."""
    first, second = use.names[1:3]
    weight = use.known(second)
    is_layer = use.shape_of("self") == use.shape[-1:] and use.name == "addmm.default"
    if weight is not None and is_layer and use.get("alpha", 1) == use.get("beta", 1) == 1:
        turned = use.taken(weight.mT)
        return use.add("Linear", use.value(first), turned, use.value("self"))
    right = use.value(second)
    if use.type_of(right).rank == 1:
        right = use.reshaped(right, (*use.type_of(right).shape, 1))
    product = use.reshaped(use.add("MatMul", use.value(first), right), use.shape)
    product = scaled(use, product, use.get("alpha", 1))
    if use.get("beta", 1) == 0:
        return product
    return use.binary("Add", scaled(use, use.value("self"), use.get("beta", 1)), product)


def scaled(use: AtenCall, value: int, factor: float) -> int:
    """A value times a number."""
    if factor == 1:
        return value
    return use.binary("Mul", value, use.scalar(factor, use.type_of(value).dtype))


@handles("einsum.default")
def einsum(use: AtenCall) -> int:
    """Sums of products over named axes."""
    values = [use.taken(tensor) for tensor in use.get("tensors")]
    return use.add("Einsum", *values, equation=str(use.get("equation")).replace(" ", ""))


@handles("scaled_dot_product_attention.default")
def attention(use: AtenCall) -> int:
    """softmax(q k' * scale + mask) v; key heads are repeated where there are fewer."""
    if use.get("dropout_p", 0.0) > 0:
        raise Unsupported("`dropout_p` is not 0; Core IR has no random numbers", EVAL)
    return _attended(use, use.get("attn_mask"))


@handles("_scaled_dot_product_flash_attention_for_cpu.default",
         "_scaled_dot_product_efficient_attention.default")  # fmt: skip
def kernel_attention(use: AtenCall) -> list[int]:
    """The same as one of PyTorch's kernels has it; only its first output has a form."""
    if use.get("dropout_p", 0.0) > 0:
        raise Unsupported("`dropout_p` is not 0; Core IR has no random numbers", EVAL)
    return [_attended(use, use.get("attn_mask", use.get("attn_bias")))]


def _attended(use: AtenCall, mask: object) -> int:
    q, k, v = (use.value(name) for name in ("query", "key", "value"))
    heads = use.type_of(q).shape
    if use.get("enable_gqa", False):
        k, v = (_repeated(use, x, heads[-3]) for x in (k, v))
    scale = use.get("scale")
    if scale == 0:
        raise Unsupported("`scale` is 0", "take the mean of the values")
    given = {} if scale is None else {"scale": float(scale)}
    values = [q, k, v]
    if mask is not None:
        taken = use.taken(mask)
        if use.type_of(taken).dtype != "bool":
            taken = use.cast(taken, use.type_of(q).dtype)
        values.append(taken)
    causal = bool(use.get("is_causal", False))
    return use.add("Attention", *values, causal=causal, **given)


def _repeated(use: AtenCall, value: int, heads: int) -> int:
    """Each head so often that there are as many as of queries."""
    dims = use.type_of(value).shape
    own = dims[-3]
    if own == heads:
        return value
    new = (*dims[:-2], 1, *dims[-2:])
    wide = (*dims[:-2], heads // own, *dims[-2:])
    made = use.broadcast_to(use.reshaped(value, new), wide)
    return use.reshaped(made, (*dims[:-3], heads, *dims[-2:]))
