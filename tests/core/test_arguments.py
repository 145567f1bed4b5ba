"""Arguments of the wrong Python type: a TypeError that says what was found and expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nacre import core

TEXT = """%0 = Input () {name="x"} : tensor<f32[2]>
%1 = Exp (%0) : tensor<f32[2]>
outputs: %1
"""
MODULE = core.parse(TEXT)

WRONG: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (core.parse, (TEXT.encode(),), "the text of a module is of type bytes, expected a string"),
    (core.parse, (None,), "the text of a module is None"),
    (core.print_module, (None,), "what is to be printed is None, expected a Module"),
    (core.print_module, (TEXT,), "what is to be printed is of type str"),
    (core.save, (None, "m.core"), "what is to be saved is None, expected a Module"),
    (core.grad, (MODULE, None), "`wrt` is None, expected a list of names"),
    (core.grad, (MODULE, 3), "`wrt` is of type int"),
    (core.grad, (MODULE, "x"), r"`wrt` is the string 'x', expected a list of names, such as \['x"),
    (core.grad, (MODULE, [0]), "a name in `wrt` is of type int"),
    (core.lower, (None, {}), "an expression is None, expected a string"),
    (core.lower, (b"x", {"x": "f32"}), "an expression is of type bytes"),
    (core.lower, ("x", None), "the inputs are None, expected types by name"),
    (core.lower, ("x", ["x"]), "the inputs are of type list"),
    (core.lower, ("x", {"x": 3}), "the type of input `x` is of type int"),
    (core.lower, ("x", {3: "f32"}), "the name of an input is of type int"),
]


@pytest.mark.parametrize(
    ("call", "given", "telling"),
    WRONG,
    ids=[f"{c.__name__}{n}" for n, (c, _, _) in enumerate(WRONG)],
)
def test_it_is_a_type_error(
    call: Callable[..., Any],
    given: tuple[Any, ...],
    telling: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match=telling):
        call(*given)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_module_is_an_answer_of_the_verifier() -> None:
    nothing: Any = None
    (found,) = core.verify(nothing)
    assert (found.code, found.message) == ("MOD10", "this is no module: None")


def test_a_tuple_and_a_generator_of_names_will_do() -> None:
    assert core.grad(MODULE, ("x",)) == core.grad(MODULE, (name for name in ["x"]))
