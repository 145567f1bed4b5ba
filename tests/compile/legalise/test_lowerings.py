"""Forms from outside: operations that the compiler would take apart, run by name, or not know."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.legalise.lowerings import (
    LOWERINGS,
    Lowering,
    register_lowering,
    unregister_lowering,
)
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import inputs_of, values


@pytest.fixture(autouse=True)
def table() -> Iterator[None]:
    before = dict(LOWERINGS)
    yield
    for opcode, op in [key for key in LOWERINGS if LOWERINGS[key] != before.get(key)]:
        unregister_lowering(opcode, op)
    assert dict(LOWERINGS) == before


def network(opcode: str, **given: object) -> Module:
    builder = Builder()
    x = builder.input("x", "f32", (4, 64))
    y = builder.add("Linear", x, builder.constant(values((32, 64), 1, 0.3)))
    return builder.module(builder.add(opcode, y, **given))


def tasks_of(bundle: nacre.Bundle) -> set[str]:
    return set(re.findall(r"= (\w+)\.async", bundle.program)) - {"transfer", "store"}


def test_an_operation_that_would_be_taken_apart_stays_whole() -> None:
    module = network("Relu")
    register_lowering(Lowering("Relu", "map", "relu"))
    bundle = nacre.compile(module, "npm4k")
    assert [op.opcode for op in bundle.legal.operations[-2:]] == ["Linear", "Relu"]
    assert tasks_of(bundle) == {"gemm", "relu"}
    assert bundle.validate(inputs_of(module)).ok


def test_an_operation_may_be_run_by_its_name() -> None:
    module = network("HardSwish")
    assert "compute" not in tasks_of(nacre.compile(module, "npm4k"))
    register_lowering(Lowering("HardSwish", "escape", "compute"))
    bundle = nacre.compile(module, "npm4k")
    assert tasks_of(bundle) == {"gemm", "compute"}
    assert 'op="core.HardSwish"' in bundle.program
    (line,) = bundle.manifest.layers[0].escaped
    assert line.endswith(": a form from outside runs it by name")
    assert bundle.validate(inputs_of(module)).ok


@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_a_form_that_computes_something_else_is_found_out(precision: str) -> None:
    module = network("HardSwish")
    register_lowering(Lowering("HardSwish", "map", "silu"))
    inputs = inputs_of(module)
    data = [inputs] if precision == "i8" else None
    bundle = nacre.compile(module, "npm4k", precision, calibration=data)  # type: ignore[arg-type]
    assert tasks_of(bundle) == {"gemm", "silu"}
    assert bundle.validate(inputs).first_difference is not None


def test_a_function_that_ran_by_name_gets_an_opcode() -> None:
    module = network("Unary", op="Erf")
    assert "compute" in tasks_of(nacre.compile(module, "npm4k"))
    register_lowering(Lowering("Unary", "map", "tanh", "Erf"))  # about the same
    bundle = nacre.compile(module, "npm4k")
    assert tasks_of(bundle) == {"gemm", "tanh"}
    found = bundle.run(inputs_of(module))["output0"]
    assert np.allclose(found, nacre.core.evaluate(module, inputs_of(module))[0], atol=0.15)


def test_what_was_taken_back_is_forgotten() -> None:
    module = network("HardSwish")
    before = nacre.compile(module, "npm4k").program
    register_lowering(Lowering("HardSwish", "map", "silu"))
    register_lowering(Lowering("ReluNan", "map", "abs"))
    unregister_lowering("HardSwish")
    unregister_lowering("ReluNan")
    unregister_lowering("HardSwish")  # once more does no harm
    assert LOWERINGS["ReluNan", ""].nem == "relu"
    assert nacre.compile(module, "npm4k").program == before


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (Lowering("HardSwich", "map", "relu"), "Core IR has no operation `HardSwich`"),
        (Lowering("HardSwish", "mpa", "relu"), "no kind of layer `mpa`"),  # type: ignore[arg-type]
        (Lowering("HardSwish", "map", "rleu"), "NEM has no opcode `rleu`"),
        (Lowering("HardSwish", "rows", "softmax"), "it has no attribute `axis`"),
        (Lowering("CumSum", "map", "relu"), "it is no function of elements"),
    ],
)
def test_rows_of_what_does_not_exist_are_refused(row: Lowering, told: str) -> None:
    with pytest.raises(InputError) as caught:
        register_lowering(row)
    (found,) = caught.value.diagnostics
    assert found.code == "CMP04"
    assert told in found.message
    assert (row.opcode, row.op) not in LOWERINGS


def test_what_is_no_row_is_refused() -> None:
    with pytest.raises(InputError, match="a form is a `Lowering`, found one of type str"):
        register_lowering("HardSwish")  # type: ignore[arg-type]
