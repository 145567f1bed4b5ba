"""The gradient of every operation that has one, against central differences in f64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from nacre.core.canonical import canonicalise
from nacre.core.evaluation.evaluate import CoreSession, evaluate
from nacre.core.gradients.grad import grad
from nacre.core.gradients.table import REFUSED, RULES
from nacre.core.module import Module
from nacre.core.ops import OPS
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.verify import verify
from tests.core.gradients.gradient_cases import CASES, Array, Case

pytestmark = pytest.mark.sampled(2)  # together they take long

_STEP = 1e-6


def differences(module: Module, inputs: dict[str, Array]) -> dict[str, Array]:
    """The gradient of the sum of all outputs by central differences, element by element."""
    session = CoreSession(module)

    def total(given: dict[str, Array]) -> float:
        return float(sum(y.sum() for y in session.run(given) if y.dtype == np.float64))

    found = {}
    for name, array in inputs.items():
        if array.dtype != np.float64:
            continue
        result = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            sides = []
            for step in (_STEP, -_STEP):
                moved = array.copy()
                moved[place] += step
                sides.append(total({**inputs, name: moved}))
            result[place] = (sides[0] - sides[1]) / (2 * _STEP)
        found[name] = result
    return found


def gradients(module: Module, inputs: dict[str, Array], names: Sequence[str]) -> list[Array]:
    """What `grad` gives, its module being sound in every way that can be asked for all modules."""
    made = grad(module, names)
    assert verify(made, "nacre-1") == []
    assert parse(print_module(made)) == made
    found = evaluate(made, inputs)
    count = len(module.outputs)
    for before, after in zip(evaluate(module, inputs), found, strict=False):
        np.testing.assert_array_equal(before, after)
    assert len(found) == count + len(names)
    again = evaluate(canonicalise(made), inputs)
    for one, other in zip(found, again, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=0)
    return found[count:]


EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "plain"])
@EVERY_CASE
def test_a_gradient_is_what_differences_say(case: Case, weighted: bool) -> None:
    module, inputs = case.module(weighted), case.values()
    found = gradients(module, inputs, case.names)
    expected = differences(module, inputs)
    for name, gradient in zip(case.names, found, strict=True):
        assert gradient.dtype == np.float64
        assert gradient.shape == inputs[name].shape
        np.testing.assert_allclose(gradient, expected[name], rtol=2e-7, atol=2e-7)


@pytest.mark.sampled(8)
@EVERY_CASE
def test_a_gradient_has_a_gradient(case: Case) -> None:
    """Second order: whatever gradients are made of can be differentiated itself."""
    first = grad(case.module(True), case.names)
    module = Module(first.operations, first.outputs[1:])
    inputs = case.values()
    if case.name.startswith(("Conv", "Attention", "MaxPool", "Resize")) or len(case.names) > 4:
        made = grad(module, case.names)  # differences would take long
        assert all(np.isfinite(g).all() for g in evaluate(made, inputs))
        return
    expected = differences(module, inputs)
    for name, gradient in zip(case.names, gradients(module, inputs, case.names), strict=True):
        scale = max(1.0, float(np.abs(expected[name]).max()))
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-6, atol=1e-6 * scale)


# The table is complete


def _uses() -> set[tuple[str, str]]:
    found = set()
    for name, spec in OPS.items():
        words = spec.attribute("op")
        choices = words.choices if words is not None and words.choices else ("",)
        found |= {(name, word) for word in choices}
    return found


def test_every_operation_has_rules_or_a_reason_why_not() -> None:
    known = {(name, word) for name, word in _uses() if {(name, word), (name, "")} & RULES.keys()}
    assert {use for use in _uses() if use[0] not in REFUSED} == known
    assert {name for name, _ in RULES} | REFUSED.keys() == OPS.keys()


def test_every_operation_with_a_rule_has_a_case() -> None:
    with_rule = {key for key, rules in RULES.items() if any(rules)}
    assert sorted(with_rule - {case.key for case in CASES}) == []


def test_a_rule_stands_for_every_float_operand() -> None:
    """Only what is an index or a condition has none, in an operation that has rules at all."""
    for (opcode, _), rules in RULES.items():
        if not any(rules):
            continue
        spec = OPS[opcode]
        missing = [spec.accepts[at] for at, rule in enumerate(rules) if rule is None]
        assert set(missing) <= {"index", "bool"} or opcode == "Gather", opcode
        assert len(rules) == len(spec.operands)
