"""Gradients of normalisations. Means and deviations are computed again from the operand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from nacre.core.gradients.site import GradientSite, Rule
from nacre.core.gradients.writer import Value
from nacre.core.module import Shape


def softmax(site: GradientSite) -> Value:
    """By y (g - the sum of g y)."""
    weighted = site.compact_g * site.y
    return weighted - site.y * weighted.sum((_axis(site),), keepdims=True)


def log_softmax(site: GradientSite) -> Value:
    """By g - e^y times the sum of g."""
    g = site.g
    return g - site.y.exp() * g.sum((_axis(site),), keepdims=True)


def _axis(site: GradientSite) -> int:
    return int(site.attributes["axis"]) % site.x.rank


def _reciprocal_deviation(site: GradientSite, variance: Value) -> Value:
    """1 over the deviation."""
    return (variance + float(site.attributes["epsilon"])).unary("Rsqrt")


@dataclass(frozen=True)
class _NormGroups:
    """A tensor as groups that are normalised over some axes, and how its scale lies over it."""

    site: GradientSite
    shape: Shape  # of the groups
    axes: Shape  # that are normalised over
    spread: Shape  # under which scale and bias broadcast
    is_centred: bool = True

    def group(self, value: Value) -> Value:
        """A tensor of the operand's shape in groups."""
        return value.reshape(self.shape)

    def mean(self, value: Value) -> Value:
        """Over a group."""
        return value.op("Mean", axes=self.axes, keepdims=True)

    @property
    def centred(self) -> Value:
        """x, less its mean."""
        x = self.group(self.site.x)
        return x - self.mean(x) if self.is_centred else x

    @property
    def reciprocal_deviation(self) -> Value:
        """1 over the deviation."""
        centred = self.centred
        return _reciprocal_deviation(self.site, self.mean(centred * centred))

    @property
    def normalised(self) -> Value:
        """What is scaled."""
        return self.centred * self.reciprocal_deviation

    def by_input(self) -> Value:
        """The gradient by x."""
        operands, g = self.site.operands, self.site.g
        if len(operands) > 1:
            g = g * operands[1].reshape(self.spread)
        g, normal = self.group(g), self.normalised
        inner = g - normal * self.mean(g * normal)
        if self.is_centred:
            inner = inner - self.mean(g)
        return (inner * self.reciprocal_deviation).reshape(self.site.x.shape)

    def by_scale(self) -> Value:
        """The gradient by the scale."""
        return self._sum_to_scale(self.site.g * self.normalised.reshape(self.site.x.shape))

    def by_bias(self) -> Value:
        """The gradient by the bias."""
        return self._sum_to_scale(self.site.g)

    def _sum_to_scale(self, value: Value) -> Value:
        return value.sum(_broadcast_to(value.shape, self.spread)).reshape(self.site.operand.shape)


def _broadcast_to(shape: Sequence[int], scale_shape: Sequence[int]) -> Shape:
    """The axes along which a parameter is the same."""
    return tuple(a for a, size in enumerate(scale_shape) if size == 1 and shape[a] != 1)


def _trailing_groups(site: GradientSite) -> _NormGroups:
    """`LayerNorm` and `RmsNorm`: over the last axes."""
    x, axis = site.x.shape, _axis(site)
    scale_shape = (1,) * axis + x[axis:]
    axes = tuple(range(axis, len(x)))
    return _NormGroups(site, x, axes, scale_shape, is_centred=site.op.opcode == "LayerNorm")


def _channel_groups(site: GradientSite) -> _NormGroups:
    """`GroupNorm`, and `InstanceNorm`, where every channel is a group."""
    x = site.x.shape
    groups = site.attributes.get("groups", x[1])
    shape = (x[0], groups, prod(x[1:]) // groups)
    return _NormGroups(site, shape, (2,), (1, x[1], *(1,) * (len(x) - 2)))


def _norm_rules(rows: Callable[[GradientSite], _NormGroups]) -> tuple[Rule, Rule, Rule]:
    """The rules of a normalisation whose groups are made so."""
    return (
        lambda site: rows(site).by_input(),
        lambda site: rows(site).by_scale(),
        lambda site: rows(site).by_bias(),
    )


@dataclass(frozen=True)
class _Batch:
    """`BatchNorm`: what is known of each channel, stretched over the tensor."""

    site: GradientSite

    @property
    def spread(self) -> Shape:
        """One value for each channel."""
        x = self.site.x.shape
        return tuple(size if a == _axis(self.site) else 1 for a, size in enumerate(x))

    @property
    def reciprocal_deviation(self) -> Value:
        """1 over the deviation, for each channel."""
        return _reciprocal_deviation(self.site, self.site.operands[4])

    @property
    def factor(self) -> Value:
        """What x is multiplied by, for each channel."""
        return self.site.operands[1] * self.reciprocal_deviation

    def sum_by_channel(self, value: Value) -> Value:
        """Over everything but the channels."""
        axes = tuple(a for a in range(value.rank) if a != _axis(self.site))
        return value.sum(axes)

    @property
    def centred_sum(self) -> Value:
        """The sum of g (x - mean), for each channel."""
        centred = self.site.x - self.site.operands[3].reshape(self.spread)
        return self.sum_by_channel(self.site.g * centred)


def _batch_input(site: GradientSite) -> Value:
    rows = _Batch(site)
    return site.compact_g * rows.factor.reshape(rows.spread)


def _batch_scale(site: GradientSite) -> Value:
    rows = _Batch(site)
    return rows.centred_sum * rows.reciprocal_deviation


def _batch_bias(site: GradientSite) -> Value:
    return _Batch(site).sum_by_channel(site.g)


def _batch_mean(site: GradientSite) -> Value:
    rows = _Batch(site)
    return -(rows.sum_by_channel(site.g) * rows.factor)


def _batch_variance(site: GradientSite) -> Value:
    rows = _Batch(site)
    return rows.centred_sum * (
        rows.factor * rows.reciprocal_deviation * rows.reciprocal_deviation * -0.5
    )


def lrn(site: GradientSite) -> Value:
    """By the window sums of squares forward, and by the same windows mirrored on the way back."""
    given, x, g = site.attributes, site.x, site.g
    size = int(given["size"])
    beta, share = float(given["beta"]), float(given["alpha"]) / size
    most = x.shape[1] - 1  # a window that reaches further finds nothing there
    before = (size - 1) // 2
    reach = min(before, most), min(size - 1 - before, most)
    base = _window_sums(x * x, reach) * share + float(given["bias"])
    inner = g * x * base.binop("Pow", -beta - 1.0)
    spread = _window_sums(inner, reach[::-1])
    direct: Value = g * base.binop("Pow", -beta)
    return direct - x * spread * (2.0 * beta * share)


def _window_sums(value: Value, reach: tuple[int, int]) -> Value:
    """Sums over neighbouring channels, so many before and behind."""
    planes = value.reshape((value.shape[0], 1, value.shape[1], -1))
    ones = value.writer.fill(1.0, value.dtype, (1, 1, sum(reach) + 1, 1))
    return planes.op("Conv", ones, pads=(reach[0], 0, reach[1], 0)).reshape(value.shape)


NORMALIZATION: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "Softmax": (softmax,),
        "LogSoftmax": (log_softmax,),
        "LayerNorm": _norm_rules(_trailing_groups),
        "RmsNorm": _norm_rules(_trailing_groups)[:2],
        "GroupNorm": _norm_rules(_channel_groups),
        "InstanceNorm": _norm_rules(_channel_groups),
        "BatchNorm": (_batch_input, _batch_scale, _batch_bias, _batch_mean, _batch_variance),
        "Lrn": (lrn,),
    }
)
