"""The library: patterns with the names that people know, each as small graphs.

Inner patterns stand before those that are made of them. One with a role can stand wherever that
word can: a product of a value with its own gate is an activation.
"""

from __future__ import annotations

from dataclasses import dataclass

from nacre.nac.genome.terms import BODY, Term, parse_term
from nacre.nac.genome.vocabulary import KNOWN_WORDS


@dataclass(frozen=True)
class Pattern:
    """A name, the graphs that have it, and what it is for."""

    name: str
    terms: tuple[Term, ...]
    meaning: str
    role: str = ""  # the word that it can stand for


def _pattern(name: str, meaning: str, *texts: str, role: str = "") -> Pattern:
    return Pattern(name, tuple(map(parse_term, texts)), meaning, role)


_EXPANDED = "act?(norm?(depthwise(act(norm?(pointwise(x))))))"
_SHORTCUT = ("x", "norm?(pointwise(x))")
_PROJECTED = "norm?(spatial(act(norm?(spatial(x)))))"
_BOTTLED = "norm?(pointwise(act(norm?(spatial(act(norm?(pointwise(x))))))))"

LIBRARY: tuple[Pattern, ...] = (
    _pattern("Swish", "a value times a gate of it: SiLU, hard swish", "mul(x, gate(x))",
             role="act"),
    _pattern("Mish", "a value times the tanh of its softplus", "mul(x, tanh(softplus(x)))",
             role="act"),
    _pattern("ErfGelu", "GELU written out",
             "scale(mul(x, shift(erf(scale(x)))))", "mul(scale?(x), shift(erf(scale(x))))",
             role="act"),
    _pattern("RootMeanSquareNorm", "a norm by the root of the mean square",
             "scale?(mul(x, rsqrt(shift?(mean(square(x))))))", role="norm"),
    _pattern("ConvBlock", "a convolution, its norm, an activation", "act(norm?(conv(x)))"),
    _pattern("PreActivation", "norm and activation before a convolution", "conv(act(norm(x)))"),
    _pattern("PatchEmbed", "windows of an image, each a vector", "patch(x)"),
    _pattern("DepthwiseSeparable", "a depthwise convolution, then a pointwise one",
             "act?(norm?(pointwise(act?(norm?(depthwise(x))))))"),
    _pattern("SqueezeExcite", "channels weighed by what all places say",
             "mul(x, gate(project(act(project(mean(x))))))"),
    _pattern("InvertedResidual", "channels made more, a depthwise convolution, made fewer again",
             f"add(x, norm?(pointwise({_EXPANDED})))", f"norm?(pointwise({_EXPANDED}))"),
    _pattern("MBConv", "the same with squeeze and excite",
             f"add(x, norm?(pointwise(SqueezeExcite({_EXPANDED}))))",
             f"norm?(pointwise(SqueezeExcite({_EXPANDED})))"),
    _pattern("Bottleneck", "ResNet's block of three convolutions",
             *(f"act?(add({shortcut}, {_BOTTLED}))" for shortcut in _SHORTCUT)),
    _pattern("BasicBlock", "ResNet's block of two convolutions",
             *(f"act?(add({shortcut}, {_PROJECTED}))" for shortcut in _SHORTCUT)),
    _pattern("ConvNeXtBlock", "a wide depthwise convolution, a norm, two layers, added",
             "add(x, scale?(project(act(project(norm(depthwise(x)))))))"),
    _pattern("Fire", "few channels, then two convolutions side by side",
             "concat(act(conv(s:act(conv(x)))), act(conv(s)))"),
    _pattern("DenseLayer", "channels that are computed put beside those that were there",
             "concat(x, body(x))"),
    _pattern("MLP", "two layers with an activation between", "linear(act(linear(x)))"),
    _pattern("GatedMLP", "two layers multiplied, one of them a gate, then a third",
             "linear(mul(act(linear(x)), linear(x)))"),
    _pattern("Attention", "sums weighed by how queries and keys agree",
             "attention(q, k, v)", "attention(q, k, v, m)",
             "matmul(softmax(shift?(scale?(matmul(q, k)))), v)",
             "matmul(softmax(add(scale?(matmul(q, k)), m)), v)"),
    _pattern("SelfAttention", "attention of a sequence to itself, with its layers",
             "linear?(Attention(linear(x), linear(x), linear(x)))",
             "linear?(Attention(scale?(linear(x)), scale?(linear(x)), linear(x)))",
             "linear?(Attention(body(x), body(x), linear(x)))",
             "linear?(Attention(body(x), body(x), linear(x), m))"),
    _pattern("TransformerLayer", "attention and two layers, each added to what came",
             "add(y:add(x, SelfAttention(norm?(x))), MLP(norm?(y)))",
             "norm(add(y:norm(add(x, SelfAttention(x))), MLP(y)))",
             "add(y:add(x, SelfAttention(norm?(x))), GatedMLP(norm?(y)))",
             "add(add(x, SelfAttention(n:norm(x))), MLP(n))",
             "add(add(x, MLP(n:norm(x))), SelfAttention(n))"),
    _pattern("Residual", "something computed of a value, added to it",
             "add(x, body(x))", "add(norm?(pointwise(x)), body(x))"),
    _pattern("Classifier", "a layer on the mean of all places", "linear(mean(x))"),
)  # fmt: skip


def _require_sound(patterns: tuple[Pattern, ...]) -> None:
    """Words that nothing has, and patterns that come later than those made of them, match never."""
    known: set[str] = {BODY, *KNOWN_WORDS}
    for pattern in patterns:
        used = {term.word for made in pattern.terms for term in made.inner() if term.word}
        if used - known or pattern.name in known:
            raise ValueError(f"pattern {pattern.name}: {sorted(used - known) or 'taken'}")
        known.add(pattern.name)


_require_sound(LIBRARY)
