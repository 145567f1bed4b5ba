"""The blocks that networks are written of: what joins them, what they are asked, how they look.

A block has the name of its pattern in the library of genomes, so that what is written is recognised
again; a few primitives (`Conv`, `Pool`, `Norm`, ..) have names of their own. A joint is what lies
between two blocks: an image, a sequence of vectors, or one vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from nacre.nac.synthesis.layers import Layers, Value

Joint = Literal["image", "sequence", "vector"]
JOINTS: Mapping[int, Joint] = MappingProxyType({4: "image", 3: "sequence", 2: "vector"})  # by rank
_RESIDUAL_GAIN = 0.1  # sums of many blocks stay in range


class Settings(Struct, frozen=True, order=True, omit_defaults=True):
    """What a block is asked, apart from its width; each kind of block looks at some."""

    kernel: int = 3
    stride: int = 1
    ratio: float = 1.0  # of the width inside to that outside
    squeeze: float = 0.25  # the same of squeeze and excite
    heads: int = 1
    act: str = "relu"
    norm: str = "none"
    pool: str = "max"
    is_gated: bool = False


Write = Callable[[Layers, Value, int, Settings], Value]


@dataclass(frozen=True)
class BlockKind:
    """A kind of block: its joints, the settings that it looks at, and how it is written."""

    name: str
    takes: tuple[Joint, ...]
    gives: Joint | None  # None: what it takes
    settings: tuple[str, ...]
    write: Write
    sets_width: bool = True
    may_repeat: bool = True

    def joint_behind(self, joint: Joint) -> Joint:
        """What it makes of a joint."""
        return self.gives or joint

    def relevant(self, settings: Settings) -> Settings:
        """The settings that it looks at; all others as they are by default."""
        return Settings(**{name: getattr(settings, name) for name in self.settings})


def _inner(ratio: float, width: int) -> int:
    return max(1, round(ratio * width))


def _conv(made: Layers, x: Value, width: int, s: Settings) -> Value:
    return made.norm(made.conv(x, width, s.kernel, s.stride), s.norm)


def _conv_block(made: Layers, x: Value, width: int, s: Settings) -> Value:
    return made.act(_conv(made, x, width, s), s.act)


def _patch_embed(made: Layers, x: Value, width: int, s: Settings) -> Value:
    return made.conv(x, width, s.kernel, s.kernel)


def _depthwise_conv(made: Layers, x: Value, width: int, s: Settings) -> Value:
    return _depthwise(made, x, s)


def _depthwise(made: Layers, x: Value, s: Settings) -> Value:
    each = made.conv(x, x.width, s.kernel, s.stride, groups=x.width)
    return made.act(made.norm(each, s.norm), s.act)


def _separable(made: Layers, x: Value, width: int, s: Settings) -> Value:
    return made.act(made.norm(made.conv(_depthwise(made, x, s), width), s.norm), s.act)


def _squeeze_excite(made: Layers, x: Value, width: int, s: Settings) -> Value:
    small = made.act(made.conv(made.mean(x, keep=True), _inner(s.squeeze, x.width)), s.act)
    return made.mul(x, made.act(made.conv(small, x.width, gain=1.0), "sigmoid"))


def _inverted(made: Layers, x: Value, width: int, s: Settings, *, excites: bool = False) -> Value:
    is_residual = s.stride == 1 and x.width == width
    wide = made.conv(x, _inner(s.ratio, x.width))
    each = _depthwise(made, made.act(made.norm(wide, s.norm), s.act), s)
    if excites:
        each = _squeeze_excite(made, each, each.width, s)
    gain = _RESIDUAL_GAIN if is_residual else 1.0
    narrow = made.norm(made.conv(each, width, gain=gain), s.norm)
    return made.add(x, narrow) if is_residual else narrow


def _mbconv(made: Layers, x: Value, width: int, s: Settings) -> Value:
    return _inverted(made, x, width, s, excites=True)


def _shortcut(made: Layers, x: Value, width: int, s: Settings) -> Value:
    if s.stride == 1 and x.width == width:
        return x
    return made.norm(made.conv(x, width, 1, s.stride, gain=1.0), s.norm)


def _basic(made: Layers, x: Value, width: int, s: Settings) -> Value:
    y = _conv_block(made, x, width, s)
    y = made.norm(made.conv(y, width, s.kernel, gain=_RESIDUAL_GAIN), s.norm)
    return made.act(made.add(_shortcut(made, x, width, s), y), s.act)


def _bottleneck(made: Layers, x: Value, width: int, s: Settings) -> Value:
    inner = _inner(s.ratio, width)
    y = made.act(made.norm(made.conv(x, inner), s.norm), s.act)
    y = _conv_block(made, y, inner, s)
    y = made.norm(made.conv(y, width, gain=_RESIDUAL_GAIN), s.norm)
    return made.act(made.add(_shortcut(made, x, width, s), y), s.act)


def _convnext(made: Layers, x: Value, width: int, s: Settings) -> Value:
    y = made.transpose(made.conv(x, x.width, s.kernel, groups=x.width, gain=1.0), (0, 2, 3, 1))
    y = _mlp(made, made.norm(y, s.norm if s.norm in ("layer", "rms") else "layer"), x.width, s)
    return made.add(x, made.transpose(y, (0, 3, 1, 2)))


def _fire(made: Layers, x: Value, width: int, s: Settings) -> Value:
    small = made.act(made.conv(x, _inner(s.ratio, width)), s.act)
    sides = made.conv(small, (width + 1) // 2), made.conv(small, max(1, width // 2), 3)
    return made.concat(*(made.act(side, s.act) for side in sides))


def _dense(made: Layers, x: Value, width: int, s: Settings) -> Value:
    return made.concat(x, _conv_block(made, x, width, s))


def _pool(made: Layers, x: Value, width: int, s: Settings) -> Value:
    return made.pool(x, s.pool, s.kernel, s.stride)


def _norm(made: Layers, x: Value, width: int, s: Settings) -> Value:
    return made.norm(x, s.norm)


def _tokens(made: Layers, x: Value, width: int, s: Settings) -> Value:
    batch, channels, *places = x.shape
    return made.transpose(made.reshape(x, (batch, channels, prod(places))), (0, 2, 1))


def _flatten(made: Layers, x: Value, width: int, s: Settings) -> Value:
    return made.reshape(x, (x.shape[0], prod(x.shape[1:])))


def _position(made: Layers, x: Value, width: int, s: Settings) -> Value:
    return made.position(x)


def _mlp(made: Layers, x: Value, width: int, s: Settings) -> Value:
    inner = _inner(s.ratio, width)
    wide = made.act(made.linear(x, inner), s.act)
    if s.is_gated:
        wide = made.mul(wide, made.linear(x, inner, 1.0))
    return made.linear(wide, width, _RESIDUAL_GAIN)


def _transformer(made: Layers, x: Value, width: int, s: Settings) -> Value:
    heads = max(h for h in range(1, s.heads + 1) if x.width % h == 0)
    norm = s.norm if s.norm in ("layer", "rms") else "layer"
    y = made.add(x, made.attention(made.norm(x, norm), heads))
    return made.add(y, _mlp(made, made.norm(y, norm), x.width, s))


def _linear_block(made: Layers, x: Value, width: int, s: Settings) -> Value:
    return made.act(made.linear(x, width), s.act)


_IMAGE: tuple[Joint, ...] = ("image",)
_SEQUENCE: tuple[Joint, ...] = ("sequence",)
_VECTOR: tuple[Joint, ...] = ("vector",)
_WINDOW = ("kernel", "stride", "act", "norm")

_ROWS = (
    BlockKind("ConvBlock", _IMAGE, None, _WINDOW, _conv_block),
    BlockKind("Conv", _IMAGE, None, ("kernel", "stride", "norm"), _conv),
    BlockKind("PatchEmbed", _IMAGE, None, ("kernel",), _patch_embed, may_repeat=False),
    BlockKind("DepthwiseConv", _IMAGE, None, _WINDOW, _depthwise_conv, sets_width=False),
    BlockKind("DepthwiseSeparable", _IMAGE, None, _WINDOW, _separable),
    BlockKind("InvertedResidual", _IMAGE, None, (*_WINDOW, "ratio"), _inverted),
    BlockKind("MBConv", _IMAGE, None, (*_WINDOW, "ratio", "squeeze"), _mbconv),
    BlockKind("BasicBlock", _IMAGE, None, _WINDOW, _basic),
    BlockKind("Bottleneck", _IMAGE, None, (*_WINDOW, "ratio"), _bottleneck),
    BlockKind("ConvNeXtBlock", _IMAGE, None, ("kernel", "act", "norm", "ratio"), _convnext,
              sets_width=False),
    BlockKind("Fire", _IMAGE, None, ("act", "ratio"), _fire),
    BlockKind("DenseLayer", _IMAGE, None, ("kernel", "act", "norm"), _dense),
    BlockKind("SqueezeExcite", _IMAGE, None, ("act", "squeeze"), _squeeze_excite,
              sets_width=False, may_repeat=False),
    BlockKind("Pool", _IMAGE, None, ("kernel", "stride", "pool"), _pool, sets_width=False,
              may_repeat=False),
    BlockKind("Norm", ("image", "sequence"), None, ("norm",), _norm, sets_width=False,
              may_repeat=False),
    BlockKind("Tokens", _IMAGE, "sequence", (), _tokens, sets_width=False, may_repeat=False),
    BlockKind("Position", _SEQUENCE, None, (), _position, sets_width=False, may_repeat=False),
    BlockKind("TransformerLayer", _SEQUENCE, None, ("heads", "ratio", "act", "norm", "is_gated"),
              _transformer, sets_width=False),
    BlockKind("Flatten", ("image", "sequence"), "vector", (), _flatten, sets_width=False,
              may_repeat=False),
    BlockKind("LinearBlock", ("vector", "sequence"), None, ("act",), _linear_block),
)  # fmt: skip

BLOCKS: Mapping[str, BlockKind] = MappingProxyType({row.name: row for row in _ROWS})
CLASSIFIER = "Classifier"  # what every network ends in: the mean of all places, and a layer


def write_classifier(made: Layers, x: Value, classes: int) -> Value:
    """The end of a network: scores of classes."""
    return made.linear(x if len(x.shape) == 2 else made.mean(x), classes, 1.0)
