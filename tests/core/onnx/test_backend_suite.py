"""The suite of onnx for backends: what passes, and that the rest is refused with a reason."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from nacre.base.diagnostics import InputError
from tests.core.onnx.backend import (
    NacreBackend,
    cases,
    is_in_scope,
    outcomes,
    run_case,
    scope,
)
from tests.effort import commit_number
from tools.generate_onnx_report import REPORT, render_report, version_line


def _rate(names: list[str]) -> float:
    return sum(outcomes()[name].is_passed for name in names) / len(names)


@pytest.mark.full
def test_every_case_passes_or_is_refused_with_a_reason() -> None:
    others = {n: o for n, o in outcomes().items() if not o.is_passed and o.kind != "refused"}
    assert not others
    assert all(o.reason for o in outcomes().values() if not o.is_passed)


@pytest.mark.sampled(3)
@pytest.mark.heavy("onnx makes all of its cases first")
def test_some_cases_pass_or_are_refused_with_a_reason() -> None:
    every = 40
    some = cases()[commit_number() % every :: every]
    others = {c.name: o for c in some if not (o := run_case(c)).is_passed and o.kind != "refused"}
    assert not others


@pytest.mark.full
def test_most_cases_pass() -> None:
    assert len(cases()) >= 1500
    assert _rate([case.name for case in cases()]) >= 0.85
    assert _rate([case.name for case in cases() if is_in_scope(case)]) >= 0.98
    assert _rate([case.name for case in cases() if case.operations <= scope()]) >= 0.95


@pytest.mark.full
def test_the_scope_is_wide_and_has_no_strangers() -> None:
    assert len(scope()) >= 120
    used = {operation for case in cases() for operation in case.operations}
    assert len(scope() & used) >= 120


@pytest.mark.full
def test_the_report_is_fresh() -> None:
    written = REPORT.read_text(encoding="utf-8")
    if written.splitlines()[0] != version_line():
        pytest.skip(f"the report is of another version than {onnx.__version__}")
    assert render_report() == written, "run `python -m tools.generate_onnx_report`"


def _model() -> onnx.ModelProto:
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2]),
        helper.make_tensor_value_info("shape", TensorProto.INT64, [1]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    return helper.make_model(helper.make_graph([node], "g", inputs, outputs))


def test_a_backend_binds_inputs_that_say_shapes() -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    rep = NacreBackend.prepare(_model())
    (y,) = rep.run((x, np.array([6])))
    assert y.tolist() == [0, 1, 2, 3, 4, 5]
    assert rep.bound == {"shape"}


def test_a_backend_passes_refusals_on() -> None:
    node = helper.make_node("Bernoulli", ["x"], ["y"])
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]
    made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])]
    model = helper.make_model(helper.make_graph([node], "g", given, made))
    with pytest.raises(InputError, match="random numbers"):
        NacreBackend.run_model(model, [np.zeros(3, np.float32)])


def test_a_backend_is_for_the_processor_only() -> None:
    assert NacreBackend.supports_device("CPU")
    assert not NacreBackend.supports_device("CUDA")
