"""Functions of one or two elements."""

from __future__ import annotations

import math
from math import inf, pi
from typing import Any

from nacre.core.torch.decompositions.table import decomposes
from nacre.core.torch.library import torch as library

torch: Any = library()
Tensor = Any


def floats(*tensors: Tensor) -> list[Tensor]:
    """The operands in the one float type that PyTorch computes in."""
    wanted = tensors[0].dtype
    for tensor in tensors:
        wanted = torch.promote_types(wanted, tensor.dtype)
    if not wanted.is_floating_point:
        wanted = torch.get_default_dtype()
    return [tensor.to(wanted) for tensor in tensors]


@decomposes("signbit.default")
def signbit(x: Tensor) -> Tensor:
    """Whether x is below 0 or a negative zero; the sign of a NaN is not looked at."""
    if not x.dtype.is_floating_point:
        return x < 0
    return (x < 0) | ((x == 0) & (x.reciprocal() < 0))


@decomposes("copysign.Tensor")
def copysign(x: Tensor, sign: Tensor) -> Tensor:
    """The size of the one with the sign of the other."""
    x, sign = floats(x, sign) if not x.dtype.is_floating_point else (x, sign)
    size = x.abs()
    return torch.where(signbit(sign), -size, size)


@decomposes("copysign.Scalar")
def copysign_number(x: Tensor, sign: float) -> Tensor:
    """The size of elements with the sign of a number."""
    (x,) = floats(x)
    is_below = math.copysign(1.0, sign) < 0
    return -x.abs() if is_below else x.abs()


@decomposes("atan2.default")
def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of a point, by the quotient of its smaller coordinate and its larger one."""
    y, x = floats(y, x)
    wide, high = x.abs(), y.abs()
    small, large = torch.minimum(wide, high), torch.maximum(wide, high)
    part = torch.where(large == 0, large, small / large)
    part = torch.where(small == inf, torch.ones_like(part), part)
    angle = part.atan()
    angle = torch.where(high > wide, pi / 2 - angle, angle)
    angle = torch.where(signbit(x), pi - angle, angle)
    return torch.where(signbit(y), -angle, angle)


@decomposes("angle.default")
def angle(x: Tensor) -> Any:  # noqa: ANN401 - a tensor, or that there is none
    """Of real numbers: pi below 0, else 0; a NaN has none but itself."""
    if x.dtype.is_complex:
        return NotImplemented
    (x,) = floats(x)
    side = torch.where(x < 0, torch.full_like(x, pi), torch.zeros_like(x))
    return torch.where(x.isnan(), x, side)


@decomposes("hypot.default")
def hypot(a: Tensor, b: Tensor) -> Tensor:
    """The length of a vector; nothing overflows that the length itself does not."""
    a, b = (v.abs() for v in floats(a, b))
    small, large = torch.minimum(a, b), torch.maximum(a, b)
    part = torch.where(large == 0, large, small / large)
    length = large * (part * part + 1).sqrt()
    return torch.where((a == inf) | (b == inf), torch.full_like(length, inf), length)


@decomposes("round.decimals")
def round_decimals(x: Tensor, *, decimals: int) -> Tensor:
    """A multiple of a power of ten."""
    if not x.dtype.is_floating_point:
        return x.clone()
    power = 10.0 ** abs(decimals)
    if decimals >= 0:
        return (x * power).round() / power
    return (x / power).round() * power


@decomposes("logcumsumexp.default")
def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """The logarithm of the sum of exponentials so far, in rounds that double what is summed."""
    if x.dim() == 0:
        return x.clone()
    sums, reach = x.movedim(dim, -1), 1
    while reach < sums.shape[-1]:
        before = torch.ops.aten.constant_pad_nd.default(sums[..., :-reach], [reach, 0], -inf)
        sums = torch.logaddexp(sums, before)
        reach *= 2
    return sums.movedim(-1, dim)


@decomposes("rrelu_with_noise_functional.default", "rrelu_with_noise.default")
def rrelu(
    x: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: object = None,
) -> Any:  # noqa: ANN401 - one tensor or two
    """Below 0 a slope, which is drawn in training only."""
    if training:
        return NotImplemented
    result = torch.ops.aten.leaky_relu.default(x, (lower + upper) / 2)
    return result, noise


@decomposes("fake_quantize_per_tensor_affine_cachemask.default")
def fake_quantize(x: Tensor, scale: float, zero: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    """Rounded to a multiple of a scale; the mask says what was inside of the range."""
    whole = (x * (1.0 / scale)).round() + zero
    return (whole.clamp(low, high) - zero) * scale, (whole >= low) & (whole <= high)


@decomposes("fake_quantize_per_channel_affine_cachemask.default")
def fake_quantize_channels(
    x: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int
) -> tuple[Tensor, Tensor]:
    """The same with a scale for each place of an axis."""
    shape = [1] * x.dim()
    shape[axis] = -1
    step, offset = scale.reshape(shape).to(x.dtype), zero.reshape(shape).to(x.dtype)
    whole = (x * step.reciprocal()).round() + offset
    return (whole.clamp(low, high) - offset) * step, (whole >= low) & (whole <= high)


@decomposes("addbmm.default")
def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Beta * x + alpha * the sum of products."""
    total = torch.bmm(a, b).sum(0) * alpha
    return total if beta == 0 else x * beta + total


@decomposes("_trilinear.default")
def trilinear(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    expand_a: list[int],
    expand_b: list[int],
    expand_c: list[int],
    summed: list[int],
    unroll: int = 1,
) -> Tensor:
    """The sum of products of three tensors, each with axes of its own put in."""
    for at in expand_a:
        a = a.unsqueeze(at)
    for at in expand_b:
        b = b.unsqueeze(at)
    for at in expand_c:
        c = c.unsqueeze(at)
    product = a * b * c
    return product.sum(summed) if summed else product


@decomposes("conv_tbc.default")
def conv_tbc(x: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution of [time, batch, channels]."""
    made = torch.conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return made.permute(2, 0, 1)
