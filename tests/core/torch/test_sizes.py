"""Open sizes of a program: what is missing, what would fit, what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nacre.core.evaluation.evaluate import evaluate
from nacre.core.torch.importer import from_torch
from tests.core.torch.programs import findings

torch = pytest.importorskip("torch")

Loose = Any


class Pair(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Loose, y: Loose) -> Loose:
        return torch.cat([x, x], 1) + y


@pytest.fixture(scope="module")
def program() -> Loose:
    b, s = torch.export.Dim("b", min=3, max=8), torch.export.Dim("s", min=4, max=20)
    sizes = ({0: b, 1: s}, {0: b, 1: 2 * s})
    return torch.export.export(Pair(), (torch.ones(4, 6), torch.ones(4, 12)), dynamic_shapes=sizes)


def test_only_what_is_missing_is_reported(program: Loose) -> None:
    ((code, message, help_),) = findings(program, shapes={"x": (3, 5)})
    assert code == "TCH02"
    assert message.startswith("input `y` has the shape [")
    assert help_ == 'shapes={"y": (3, 10)}'


def test_what_follows_from_an_expression(program: Loose) -> None:
    ((_, message, help_),) = findings(program, shapes={"y": (4, 18)})
    assert message.startswith("input `x` has the shape [")
    assert help_ == 'shapes={"x": (4, 9)}'


def test_suggestions_fit(program: Loose) -> None:
    found = findings(program)
    assert [(code, help_) for code, _, help_ in found] == [
        ("TCH02", 'shapes={"x": (3, 4)}'), ("TCH02", 'shapes={"y": (3, 8)}'),
    ]  # fmt: skip
    module = from_torch(program, shapes={"x": (3, 4), "y": (3, 8)})
    x, y = np.random.default_rng(3).normal(size=(2, 3, 8)).astype("f")
    np.testing.assert_array_equal(
        evaluate(module, {"x": x[:, :4], "y": y})[0], np.hstack([x[:, :4]] * 2) + y
    )


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ((3, 50), (3, 40), ["input `x` was given 50 for axis 1, the program says 4 to 20"]),
        ((2, 5), (2, 10), ["input `x` was given 2 for axis 0, the program says 3 to 8",
                           "input `y` was given 2 for axis 0, the program says 3 to 8"]),
        ((3, 5), (4, 10), ["input `y` was given 4 for axis 0, SYMBOL is 3 by axis 0 of `x`"]),
        ((3, 5), (3, 12), ["input `y` was given 12 for axis 1, 2*SYMBOL is 10 by axis 1 of `x`"]),
    ],
)  # fmt: skip
def test_sizes_that_the_program_is_not_for(
    program: Loose, x: Loose, y: Loose, expected: list[str]
) -> None:
    b, s = next(n for n in program.graph.nodes if n.name == "x").meta["val"].shape
    found = findings(program, shapes={"x": x, "y": y})
    messages = [m.replace(str(b), "SYMBOL").replace(str(s), "SYMBOL") for _, m, _ in found]
    assert messages == expected
    assert {code for code, _, _ in found} == {"TCH06"}
    assert all("exported for" in str(help_) for _, _, help_ in found)


def test_a_multiple_that_is_none(program: Loose) -> None:
    ((code, message, _),) = findings(program, shapes={"y": (3, 11)})
    assert code == "TCH06"
    assert "input `y` was given 11 for axis 1, the program says 2*" in message


@pytest.mark.parametrize("wrong", [(3, 5.0), (True, 5), (0, 5), (-1, 5), "35", 3, None, (3, "5")])
def test_sizes_are_integers(program: Loose, wrong: Loose) -> None:
    ((code, message, help_),) = findings(program, shapes={"x": wrong, "y": (3, 10)})
    assert code == "TCH06"
    assert message == f"input `x` was given the shape {wrong!r}, expected integers from 1"
    assert help_ == 'shapes={"x": (3, 4)}'


def test_integers_of_numpy_are_sizes(program: Loose) -> None:
    sizes = np.array([3, 5, 10])
    module = from_torch(program, shapes={"x": [sizes[0], sizes[1]], "y": (sizes[0], sizes[2])})
    assert module.input_types["y"].shape == (3, 10)


def test_a_size_of_one_is_let_pass_where_pytorch_does() -> None:
    sizes = {0: torch.export.Dim("n", max=9)}
    layer = torch.nn.Linear(4, 2)
    program = torch.export.export(layer, (torch.ones(3, 4),), dynamic_shapes=(sizes,))
    assert from_torch(program, shapes={"input": (1, 4)}).input_types["input"].shape == (1, 4)
    ((code, message, _),) = findings(program, shapes={"input": (10, 4)})
    assert code == "TCH06"
    assert message.startswith("input `input` was given 10 for axis 0, the program says ")
    assert message.endswith(" to 9")
