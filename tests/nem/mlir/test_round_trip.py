"""Text to a module and back is the canonical text, also by way of upstream's tool."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import nacre
from nacre import nem
from nacre.base.source import Source
from nacre.core.module import Module
from nacre.nem.syntax.formatter import format_source
from nacre.nem.syntax.parser import parse
from tests.compile.models import convolution_model, linear_model
from tests.effort import PROFILE
from tests.nem.mlir.upstream import needs_mlir_opt, run_mlir_opt, through_mlir_opt
from tests.nem.syntax.strategies import commented_documents

pytest.importorskip("xdsl")

pytestmark = pytest.mark.sampled(2)  # together they take long

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples").rglob("*.nem"))
SHIPPED = sorted((ROOT / "src/nacre/nem/spec").rglob("*.nem"))
CASES = sorted((ROOT / "tests/conformance/cases").rglob("*.nem"))


def canonical(text: str) -> str:
    return format_source(Source("p.nem", text))


def text_of(path: Path) -> str:
    """The text of a file that follows the grammar; others are not what a module is made of."""
    text = path.read_text(encoding="utf-8")
    if not parse(Source("p.nem", text)).is_valid:
        pytest.skip("does not follow the grammar")
    return text


def calibration(module: Module) -> list[dict[str, Any]]:
    random = np.random.default_rng(0)
    return [
        {name: random.normal(size=type_.shape).astype("f4")}
        for name, type_ in module.input_types.items()
    ]


RANDOM = {"fast": 24, "full": 150, "fuzz": 5000}

PLANS = {
    "linear in f16": lambda: nacre.compile(linear_model(64, 256, 64), "npm4k"),
    "convolution in i8": lambda: nacre.compile(
        convolution_model(), "npm4k", "i8", calibration=calibration(convolution_model())
    ),
    "convolution on a small device": lambda: nacre.compile(convolution_model(), "npm_lite"),
}
# All of them with the compiler in front of them take seconds: CI has one.
COMPILED = [
    pytest.param(name, marks=pytest.mark.full if at else ()) for at, name in enumerate(PLANS)
]


@cache
def compiled_plan(name: str) -> str:
    return PLANS[name]().program


def names(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("path", EXAMPLES + SHIPPED, ids=names)
def test_examples_and_devices_come_back(path: Path) -> None:
    text = text_of(path)
    assert nem.from_mlir(nem.to_mlir(text)) == canonical(text)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("path", CASES, ids=names)
def test_case_files_come_back(path: Path) -> None:
    text = text_of(path)
    assert nem.from_mlir(nem.to_mlir(text)) == canonical(text)


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_plan_comes_back(name: str) -> None:
    plan = compiled_plan(name)
    assert nem.from_mlir(nem.to_mlir(plan)) == canonical(plan)


@pytest.mark.fuzz
@settings(max_examples=RANDOM[PROFILE])
@given(commented_documents)
def test_random_documents_come_back(text: str) -> None:
    assert nem.from_mlir(nem.to_mlir(text)) == canonical(text)


@needs_mlir_opt
@pytest.mark.parametrize("path", EXAMPLES, ids=names)
def test_examples_come_back_through_mlir_opt(path: Path) -> None:
    text = text_of(path)
    assert nem.from_mlir(through_mlir_opt(nem.to_mlir(text))) == canonical(text)


@needs_mlir_opt
@pytest.mark.sampled(40)
@pytest.mark.parametrize("path", SHIPPED + CASES, ids=names)
def test_devices_and_case_files_come_back_through_mlir_opt(path: Path) -> None:
    text = text_of(path)
    assert nem.from_mlir(through_mlir_opt(nem.to_mlir(text))) == canonical(text)


@needs_mlir_opt
@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_plan_comes_back_through_mlir_opt(name: str) -> None:
    plan = compiled_plan(name)
    assert nem.from_mlir(through_mlir_opt(nem.to_mlir(plan))) == canonical(plan)


@needs_mlir_opt
@pytest.mark.parametrize("path", EXAMPLES[:3], ids=names)
def test_passes_of_mlir_opt_leave_programs_alone(path: Path) -> None:
    text = text_of(path)
    done = run_mlir_opt(nem.to_mlir(text), "--canonicalize", "--cse", "--symbol-dce")
    assert nem.from_mlir(done.stdout) == canonical(text)


@needs_mlir_opt
@pytest.mark.fuzz
@settings(max_examples=RANDOM[PROFILE] // 4)
@given(commented_documents)
def test_random_documents_come_back_through_mlir_opt(text: str) -> None:
    assert nem.from_mlir(through_mlir_opt(nem.to_mlir(text))) == canonical(text)


@pytest.mark.parametrize("path", EXAMPLES, ids=names)
def test_xdsl_prints_a_module_that_comes_back(path: Path) -> None:
    from xdsl.parser import Parser
    from xdsl.printer import Printer

    from nacre.nem.mlir.dialect import nem_context

    text = text_of(path)
    module = Parser(nem_context(), nem.to_mlir(text)).parse_module()
    module.verify()
    printed = io.StringIO()
    Printer(printed, print_generic_format=True).print_op(module)
    assert nem.from_mlir(printed.getvalue()) == canonical(text)


@pytest.mark.parametrize("value", ["-9223372036854775808", "-9223372036854775807", "3 - -1"])
def test_integers_of_64_bits_come_back(value: str) -> None:
    text = f"const X = {value}\nlet q = per_tensor(scale=0.5, zero_point={value})\n"
    assert nem.from_mlir(nem.to_mlir(text)) == text
