"""Forms: what tasks of a kind share, from program to program, and what each has of its own."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.bind import forms
from nacre.bind.forms import remembered_forms
from nacre.tcb.image import Block

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TARGETS = ("ideal", "npm_lite", "npm4k")  # with a CSTL of one part, and of two

HEAD = """include "npm4k.nem"
device npm4k
program p:
buffer X : DDR (size=4096)
buffer Y : DDR (size=4096)
buffer A : L1 (size=65536)
"""
QUANTS = ("quant=per_tensor(scale=0.1, zero_point=1)",
          "quant=per_tensor(scale=0.003, zero_point=-3)", None)  # fmt: skip
TILE = "region(A, 0, 16) elem=i8, shape=[16], layout=C"


def tasks(image: nacre.TcbImage) -> list[Block]:
    """The blocks of tasks, in the order of their streams."""
    return [b for s in image.image.streams for b, _ in s.blocks() if b.kind == "task"]


@pytest.mark.parametrize("order", [*permutations(TARGETS)])
def test_an_image_is_the_same_whatever_was_bound_before(order: tuple[str, ...]) -> None:
    path = EXAMPLES / "conv2d_relu.nem"
    expected = {}
    for uarch in TARGETS:
        remembered_forms.cache_clear()
        expected[uarch] = nacre.bind(path, uarch=uarch, allow_serialise=True).text
    remembered_forms.cache_clear()
    for uarch in (*order, *order):
        assert nacre.bind(path, uarch=uarch, allow_serialise=True).text == expected[uarch]


def test_tasks_that_differ_in_their_quantisation_have_each_their_own() -> None:
    tiles = (TILE if quant is None else f"{TILE}, {quant}" for quant in QUANTS)
    relus = (f"t{n} = relu.async in {t} out {t}" + f" deps=[t{n - 1}]" * bool(n)
             for n, t in enumerate(tiles))  # fmt: skip
    image = nacre.bind(HEAD + "\n".join(relus) + "\n")
    found = [block.inputs[0] for block in tasks(image)]
    quants = [operand.quant if operand is not None else None for operand in found]
    assert [q and q.scales for q in quants] == [
        (float(np.float32(0.1)),),
        (float(np.float32(0.003)),),
        None,
    ]
    assert [q and q.zero_points for q in quants] == [(1,), (-3,), None]


@pytest.mark.parametrize("most", [1, 2])
def test_forms_that_are_forgotten_are_made_again(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = EXAMPLES / "conv2d_relu.nem"
    expected = nacre.bind(path).text
    remembered_forms.cache_clear()
    monkeypatch.setattr(forms, "_MOST_REMEMBERED", most)
    assert [nacre.bind(path).text for _ in range(2)] == [expected] * 2
