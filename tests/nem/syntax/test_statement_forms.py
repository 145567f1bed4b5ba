"""Statements that are filled in are those that the parser makes, in every place and value."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.source import Source
from nacre.nem.syntax import statement_forms
from nacre.nem.syntax.parser import ParseResult, parse

LINES = (
    "const a = 4",
    "const b = a * 2 + 3",
    "buffer A : DDR (size=4096, align=64)",
    "buffer B : L1[1] (size=a * 1024) @debug(tiles)",
    "let q = per_tensor(scale=0.5, zero_point=-3)",
    "let c = per_channel(axis=0, scales=[0.5, 0.25, 1.0e-3], zero_points=[0, 0, 0])",
    "let T = elem=i8, shape=[4, 4], layout=MN, quant=q",
    "let X = region(B, 0, 16) type=T",
    "let Y = region(B, (i mod 2) * 16 + 64, 16)\n    elem=i8, shape=[4, 4], strides=[4, 1] @x",
    "Z = region(A, 0, 16) elem=f16, shape=[2, 4], layout=NHWC @readonly",
    "t = transfer.async(dst=X, src=region(A, 0, 16))",
    "u = store.sync(dst=region(A, 32, 16), src=Y, deps=[t, g]) @debug(t)",
    "g = gemm.async\n    in X, Y\n    out X\n    deps=[t]\n    accum_type=i32 @resource(NMU[0])",
    "conv2d.sync in X, Y out Z pads=[0, 1, 0, 1] strides=[2, 2] groups=1 is_it=true",
    "r = relu.async in X out Y @seq_engine(i mod 4)",
    "wait(t, u)",
    "loop i in [0..a - 1] @max_in_flight(2):",
    "endloop",
)
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+(?:e-\d+)?)?(?![\w.])")
NAME = re.compile(r"\b[A-Zabcgirtuqc]\b")
# What may stand anywhere, and makes a statement another one or none.
INSERTED = ("=", ",", "(", "]", "mod", "N", "7", "region", "wait", "@", "\n", "in", "-", "strides=")


def _parsed(source: Source, *, first_uses: int) -> ParseResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statement_forms, "_FIRST_USES", first_uses)
        patch.setattr(statement_forms, "_fillers", {})
        patch.setattr(statement_forms, "_counts", {})
        return parse(source)


def _require_same(text: str) -> None:
    source = Source("<text>", text)
    filled, plain = _parsed(source, first_uses=1), _parsed(source, first_uses=1 << 30)
    assert filled.document == plain.document
    assert filled.diagnostics == plain.diagnostics


def _varied(line: str, chance: random.Random) -> str:
    """A line with other numbers and names, and sometimes with a mistake."""
    line = NUMBER.sub(lambda m: f"{chance.randrange(10**4)}{'.25' * ('.' in m[0])}", line)
    line = NAME.sub(lambda m: m[0] + chance.choice(["", "1", "_tile", "size", "_7"]), line)
    if chance.random() < 0.15:
        at = chance.randrange(len(line) + 1)
        line = f"{line[:at]} {chance.choice(INSERTED)} {line[at:]}"
    if chance.random() < 0.05:
        words = line.split(" ")
        del words[chance.randrange(len(words))]
        line = " ".join(words)
    return line + chance.choice(["", "", "", "  # a comment", "\n"])


@given(st.integers(0, 2**32))
def test_forms_change_no_node_and_no_finding(seed: int) -> None:
    chance = random.Random(seed)
    lines = [_varied(chance.choice(LINES), chance) for _ in range(40)]
    _require_same("program p:\n" + "\n".join(lines))


def test_statements_of_one_form_are_filled_in() -> None:
    text = "\n".join(f"let r{n} = region(B, {n * 16}, 16) type=t{n}" for n in range(9))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statement_forms, "_fillers", {})
        patch.setattr(statement_forms, "_counts", {})
        parse(Source("<text>", text))
        assert len(statement_forms._fillers) == 1


@pytest.mark.parametrize(
    "name",
    ["device", "program", "size", "relu", "in", "layout", "mod", "dst", "per_tensor", "i8", "true"],
)
def test_words_of_the_language_may_be_names(name: str) -> None:
    lines = [f"let x{n} = region(B, {n}, 1)\nrelu.async in x{n} out {name}" for n in range(3)]
    lines += [f"relu.async in {name} out x{n}\n{name} = relu.async in x1 out x2" for n in range(3)]
    _require_same("\n".join(lines))
