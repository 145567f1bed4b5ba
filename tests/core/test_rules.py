"""Every code of the rules of Core IR is a rule or a behaviour, and something proves it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.base.rules import RULES
from nacre.core import catalogue
from nacre.core.canonical import canonicalise
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.ops import OPS
from nacre.core.rules.e_codes import E_CODES, e_code
from nacre.core.rules.facts import operation_rules
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.verify import RULE_MODULES
from tests.core.test_cases import all_cases

catalogue.load()
CORE_RULES = {code: rule for code, rule in RULES.items() if rule.language == "Core IR"}

# How many codes each group of the specification's rules has.
GROUPS = {
    "MOD": 15,
    "CON": 7,
    "BIN": 5,
    "RED": 7,
    "SHP": 10,
    "IDX": 3,
    "SLC": 5,
    "GAT": 5,
    "DOT": 3,
    "MAT": 4,
    "CNV": 9,
    "UNA": 7,
    "NCR": 3,
    "CAN": 7,
    "TXT": 6,
    "LOW": 1,
}
CODES = [f"{group}{number:02}" for group, count in GROUPS.items() for number in range(1, count + 1)]
OURS = [code for code in CODES if code[:3] not in ("CAN", "LOW")]

NOT_DECLARED = {
    "CAN07": "not something to check: `grad` and lowering canonicalise for themselves",
}
# What a case file cannot show, and the test that does.
PROOFS = {
    "BIN05": "test_operands_of_sub_stay",
    "CNV09": "test_every_combination_of_a_convolution_is_computed_or_diagnosed",
    "GAT04": "test_a_gather_outside_of_the_tensor_is_refused_when_it_runs",
    "MOD09": "test_any_damage_is_described_alike_each_time",
    "MOD14": "test_every_operation_defines_one_value",
    "RED06": "test_a_mean_divides_by_the_number_of_elements",
    "RED07": "test_a_mean_of_integers_is_cut_towards_zero",
    "TXT01": "test_empty_braces_are_read_and_never_printed",
    "TXT03": "test_what_is_printed_reads_back",
    "TXT04": "test_attributes_are_printed_by_name",
    "TXT06": "test_an_operation_is_a_record_of_five_fields",
    "UNA06": "test_log_follows_ieee_and_relu_of_nan_is_zero",
    "UNA07": "test_relu_of_minus_zero_is_zero",
}
# `outputs:` missing has no line to stand on; the reader's own tests show it.
SHOWN = {case.code for case in all_cases()}


@cache
def _tests() -> set[str]:
    return {
        node.name
        for path in Path(__file__).parent.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_declared_or_has_a_reason_not_to_be(code: str) -> None:
    assert code in CORE_RULES or NOT_DECLARED.get(code)


@pytest.mark.parametrize("code", sorted(CORE_RULES))
def test_a_page_is_a_sentence_and_names_its_clause(code: str) -> None:
    rule = CORE_RULES[code]
    assert rule.spec.startswith("Core IR / ")
    assert rule.summary[0].isupper() or rule.summary[0] in "`"
    assert rule.summary.endswith(".")


@pytest.mark.parametrize("code", OURS)
def test_a_case_or_a_test_proves_a_rule(code: str) -> None:
    assert code in SHOWN or PROOFS.get(code) in _tests()


def test_only_behaviour_is_proved_without_a_case() -> None:
    assert [code for code in PROOFS if not CORE_RULES[code].behaviour] == []


def test_rules_about_uses_stand_in_the_modules_that_are_asked() -> None:
    names = {f"nacre.core.rules.{name}" for name in RULE_MODULES}
    homes = {rule.find.__module__ for rule in operation_rules()}
    assert homes <= names


def test_rules_are_about_operations_that_exist() -> None:
    asked = {opcode for rule in operation_rules() for opcode in rule.opcodes}
    assert asked <= set(OPS)


@pytest.mark.parametrize("code", E_CODES)
def test_a_public_code_belongs_to_a_rule(code: str) -> None:
    assert code in CORE_RULES
    public = e_code(code)
    assert public is not None
    # The catalogue of the language: six categories, numbered from 1.
    sizes = {"E1": 6, "E2": 7, "E3": 10, "E4": 11, "E5": 5, "E6": 8}
    assert 1 <= int(public[2:]) <= sizes[public[:2]]


def test_what_the_catalogue_does_not_know_has_no_public_code() -> None:
    assert e_code("MOD11") is None
    assert e_code("BIN03") == "E3001"


def test_operands_of_sub_stay() -> None:
    module = parse(
        '%0 = Input () {name="a"} : tensor<f32[2]>\n'
        '%1 = Input () {name="b"} : tensor<f32[2]>\n'
        "%2 = BinOp (%1, %0) {op=Sub} : tensor<f32[2]>\n"
        "outputs: %2\n"
    )
    assert canonicalise(module) == module


def of_one(opcode: str, type_in: str, type_out: str, attributes: str = "") -> str:
    braces = f" {{{attributes}}}" if attributes else ""
    return (
        f'%0 = Input () {{name="x"}} : tensor<{type_in}>\n'
        f"%1 = {opcode} (%0){braces} : tensor<{type_out}>\noutputs: %1\n"
    )


def test_a_mean_divides_by_the_number_of_elements() -> None:
    text = of_one("Mean", "f32[2, 3, 4]", "f32[2]", "axes=[1, 2], keepdims=false")
    (found,) = evaluate(parse(text), {"x": np.full((2, 3, 4), 5, np.float32)})
    assert found.tolist() == [60 / 12] * 2


def test_a_mean_of_integers_is_cut_towards_zero() -> None:
    text = of_one("Mean", "i32[2, 2]", "i32[2]", "axes=[1], keepdims=false")
    (found,) = evaluate(parse(text), {"x": np.array([[-3, 0], [3, 0]], np.int32)})
    assert found.tolist() == [-1, 1]


def test_log_follows_ieee_and_relu_of_nan_is_zero() -> None:
    x = np.array([0.0, -1.0, np.nan], np.float32)
    (logs,) = evaluate(parse(of_one("Log", "f32[3]", "f32[3]")), {"x": x})
    assert logs[0] == -np.inf
    assert np.isnan(logs[1:]).all()
    (relu,) = evaluate(parse(of_one("Relu", "f32[3]", "f32[3]")), {"x": x})
    assert relu.tolist() == [0, 0, 0]


def test_relu_of_minus_zero_is_zero() -> None:
    x = np.array([-0.0], np.float64)
    (found,) = evaluate(parse(of_one("Relu", "f64[1]", "f64[1]")), {"x": x})
    assert not np.signbit(found[0])


@pytest.mark.parametrize("index", [-1, 3])
def test_a_gather_outside_of_the_tensor_is_refused_when_it_runs(index: int) -> None:
    module = parse(
        '%0 = Input () {name="x"} : tensor<f32[3]>\n'
        '%1 = Input () {name="i"} : tensor<i64[1]>\n'
        "%2 = Gather (%0, %1) : tensor<f32[1]>\n"
        "outputs: %2\n"
    )
    with pytest.raises(InputError):
        evaluate(module, {"x": np.zeros(3, np.float32), "i": np.array([index])})


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.path.stem)
def test_what_is_printed_reads_back(case: object) -> None:
    assert hasattr(case, "text")
    try:
        module = parse(case.text)
    except InputError:
        return  # a case of the reader
    text = print_module(module)
    assert parse(text) == module
    assert print_module(parse(text)) == text


def test_attributes_are_printed_by_name() -> None:
    text = of_one("Slice", "f32[4]", "f32[2]", "steps=[1], starts=[0], ends=[2]")
    assert "{ends=[2], starts=[0], steps=[1]}" in print_module(parse(text))


def test_an_operation_is_a_record_of_five_fields() -> None:
    op = parse(of_one("Sum", "f32[4]", "f32[]", "axes=[0], keepdims=false")).operations[1]
    assert (op.value_id, op.opcode, list(op.operands)) == (1, "Sum", [0])
    assert dict(op.attributes) == {"axes": (0,), "keepdims": False}
    assert op.result_type == "tensor<f32[]>"
