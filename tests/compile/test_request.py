"""`nacre.compile` and `nacre.estimate` take the same, and say what they cannot take."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nacre
from nacre import core
from nacre.base.diagnostics import InputError
from nacre.compile.api import compile as compiled
from nacre.compile.estimate.estimate import estimate
from tests.compile.models import linear_model, values

ENTRIES: list[Any] = [compiled, estimate]


def messages(entry: Any, *given: object, **more: object) -> list[tuple[str, str]]:  # noqa: ANN401
    with pytest.raises(InputError) as caught:
        entry(*given, **more)
    return [(found.code, found.message) for found in caught.value.diagnostics]


def test_both_take_the_same_and_an_estimate_a_clock() -> None:
    taken = [inspect.signature(entry).parameters for entry in ENTRIES]
    assert set(taken[1]) - set(taken[0]) == {"clock_mhz"}
    assert set(taken[0]) - set(taken[1]) == {"cache"}
    for name, parameter in taken[0].items():
        if name == "cache":
            continue
        assert taken[1][name].default == parameter.default, name


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"precision": "f15"}, "no precision `f15`, expected one of f16, f32, i8"),
        ({"observer": "min"}, "no observer `min`, there are minmax, percentile, mse"),
        ({"precision_map": ["a"]}, "a precision map gives layers precisions"),
        ({"precision_map": {"a": "f16"}}, "a precision map is for i8"),
        ({"precision_map": {None: "f16"}}, "a precision map names layers or values, found None"),
        ({"example_args": np.ones(3)}, "`example_args` is a ndarray, expected the arguments"),
        ({"device": None}, "a device is a name, a path or a `Device`, found NoneType"),
        ({"device": 5}, "a device is a name, a path or a `Device`, found int"),
        ({"io_layout": "NHWC"}, "`io_layout` is 'NHWC', expected 'model' or 'native'"),
        ({"io_layout": ("model",)}, "`io_layout` is ('model',), expected 'model' or 'native'"),
        ({"ddr_bytes": 0}, "`ddr_bytes` is 0, expected a number of bytes"),
        ({"shapes": {"x": (1,)}}, "`shapes` are for models that leave sizes open"),
        ({"constants": {"x": 1}}, "`constants` bind inputs of an ONNX model"),
        ({"example_args": ()}, "`example_args` are for a module of PyTorch, found a module"),
    ],
)
def test_a_request_without_sense_is_refused(entry: Any, more: dict[str, Any], told: str) -> None:  # noqa: ANN401
    given = {"device": "npm4k", **more}
    ((code, message),) = messages(entry, linear_model(8, 16, 16), **given)
    assert code == "CMP04"
    assert message.startswith(told)


@pytest.mark.parametrize("entry", ENTRIES)
def test_something_that_is_no_model_is_refused(entry: Any) -> None:  # noqa: ANN401
    class ExportedProgram:
        """Only the name is that of PyTorch's."""

    for source in (3, ExportedProgram()):
        ((code, message),) = messages(entry, source, "npm4k")
        assert (code, message) == (
            "CMP04", f"a model is a module, a `NacModel` or a path, found {type(source).__name__}",
        )  # fmt: skip


def test_an_input_of_an_onnx_model_is_bound(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
    tensors = [helper.make_tensor_value_info(n, f32, [2, 3]) for n in ("x", "k", "y")]
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "k"], ["y"])], "g", tensors[:2], tensors[2:]
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    bound = {"k": np.full((2, 3), 3, np.float32)}
    bundle = nacre.compile(path, "npm4k", constants=bound)
    assert list(bundle.source.input_types) == ["x"]
    x = values((2, 3), 1)
    np.testing.assert_allclose(bundle.run({"x": x})["y"], 3 * x, rtol=2e-3)
    assert nacre.estimate(path, "npm4k", constants=bound).fits


def test_an_estimate_of_integers_takes_what_a_plan_takes() -> None:
    """The layer that stays in floats is the plan's too; so both have the same time."""
    module = linear_model(8, 16, 16)
    given: dict[str, Any] = {
        "calibration": {"x": values((4, 8, 16), 3)},
        "observer": "minmax",
        "precision_map": {"%2": "f16"},
    }
    found = nacre.estimate(module, "npm4k", "i8", **given)
    assert found.plan is not None
    assert found.plan.ideal.cycles == nacre.compile(module, "npm4k", "i8", **given).time().cycles
    assert found.plan.ideal.cycles != nacre.estimate(module, "npm4k", "i8").plan.ideal.cycles  # type: ignore[union-attr]


# PyTorch


@pytest.mark.heavy("compiles networks")
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_module_and_a_program_of_pytorch(entry: Any) -> None:  # noqa: ANN401
    torch = pytest.importorskip("torch")
    network = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).eval()
    args = (torch.linspace(-1, 1, 16).reshape(2, 8),)
    assert entry(network, "npm4k", example_args=args) is not None
    assert entry(torch.export.export(network, args), "npm4k") is not None
    ((code, message),) = messages(entry, network, "npm4k")
    assert code == "CMP04"
    assert message == (
        "`Sequential` is a module of PyTorch, and nothing says with which arguments it is called"
    )


@pytest.mark.parametrize("clock", [0, -1.0, float("nan"), float("inf"), True, "800"])
def test_a_clock_is_a_positive_number(clock: Any) -> None:  # noqa: ANN401
    module = linear_model(8, 16, 16)
    bundle = nacre.compile(module, "npm4k")
    for entry, given in ((bundle.time, ()), (estimate, (module, "npm4k"))):
        ((code, message),) = messages(entry, *given, clock_mhz=clock)
        assert code == "CMP04"
        assert message == f"the clock is {clock!r} MHz, expected a positive number"


def test_a_clock_may_be_a_number_of_numpy() -> None:
    clock: Any = np.float32(500)
    timed = nacre.compile(linear_model(8, 16, 16), "npm4k").time(clock_mhz=clock)
    assert timed.milliseconds == timed.cycles / 500_000


def test_a_bundle_goes_into_a_folder_with_a_name() -> None:
    bundle = nacre.compile(linear_model(8, 16, 16), "npm4k")
    assert messages(bundle.save, "") == [("CMP04", "the name of the folder is empty")]


BROKEN = {
    "MOD10": "%1 = Cast (%0) {dtype=i32} : tensor<i32[4]>",
    "MOD01": "%1 = Relu (%7) : tensor<f32[4]>",
    "NCR02": "%1 = Softmax (%0) {axis=3} : tensor<f32[4]>",
}


@pytest.mark.parametrize("precision", ["f16", "i8", "w4f16"])
@pytest.mark.parametrize("code", BROKEN)
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_module_that_breaks_promises_is_refused_before_any_stage_looks_at_it(
    entry: Any,  # noqa: ANN401
    code: str,
    precision: str,
) -> None:
    text = f'%0 = Input () {{name="x"}} : tensor<i8[4]>\n{BROKEN[code]}\noutputs: %1\n'
    found = messages(entry, core.parse(text), "npm4k", precision=precision)
    assert code in [one for one, _ in found], found
