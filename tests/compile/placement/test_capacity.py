"""Tensors larger than DDR are refused at once, whatever a plan would do with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import nacre
from nacre.base.diagnostics import Diagnostic, InputError
from nacre.compile.estimate.bounds_traffic import ddr_traffic
from nacre.compile.estimate.estimate import estimate
from nacre.compile.options import Precision
from nacre.compile.partition.layers import Layer
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nem.checks.engine import named_device
from tests.compile.models import values

_FAR = 10**9  # rows and columns of padding: nothing may look at each
_HUGE = 1 + 2 * _FAR
_DDR = 256 << 20


def padded(pad: int, *, pooled: bool = False) -> Module:
    """A convolution of a few elements that sees mostly padding; its mean, where pooled."""
    builder = Builder()
    x = builder.input("x", "f32", (1, 1, 1, 2))
    weights = builder.constant(values((1, 1, 2, 2), 1))
    y = builder.add("Conv", x, weights, layout="NHWC", pads=(pad,) * 4)
    return builder.module(builder.add("Mean", y, axes=(1, 2)) if pooled else y)


def refusal(module: Module | Path, precision: Precision = "f16", **given: object) -> Diagnostic:
    with pytest.raises(InputError) as caught:
        nacre.compile(module, "npm4k", precision, **given)  # type: ignore[arg-type]
    (found,) = caught.value.diagnostics
    return found


@pytest.mark.parametrize(("precision", "size"), [("f16", 2), ("f32", 4), ("i8", 1)])
def test_an_output_larger_than_ddr_is_refused_before_any_stage(
    precision: Precision, size: int
) -> None:
    stages: list[str] = []
    given = {"calibration": {"x": np.ones((1, 1, 1, 1, 2), np.float32)}} if size == 1 else {}
    found = refusal(padded(_FAR), precision, on_stage=lambda name, _: stages.append(name), **given)
    assert found.code == "CMP05"
    assert f"DDR has {_DDR} bytes, and a tensor of the model takes more" in found.message
    assert f"`output0_DDR` {2 * size * _HUGE**2} for f32[1, {_HUGE}, {_HUGE}, 2]" in found.message
    assert "`ddr_bytes=`" in (found.help or "")
    assert stages == []


def test_a_tensor_between_layers_is_refused_by_the_layer_that_makes_it() -> None:
    found = refusal(padded(_FAR, pooled=True))
    assert found.code == "CMP05"
    assert f"result of `conv_1` {4 * _HUGE**2} for f16[1, {_HUGE}, {_HUGE}, 2]" in found.message


def test_i8_is_refused_before_calibration_evaluates_the_model() -> None:
    stages: list[str] = []
    found = refusal(
        padded(_FAR, pooled=True),
        "i8",
        calibration={"x": np.ones((1, 1, 1, 1, 2), np.float32)},
        on_stage=lambda name, _: stages.append(name),
    )
    assert found.code == "CMP05"
    assert f"{2 * _HUGE**2} for f32[1, {_HUGE}, {_HUGE}, 2] as i8" in found.message
    assert stages == ["legalise", "layout"]


def test_weights_beyond_ddr_are_refused_before_calibration() -> None:
    def stack(*seeds: int) -> Module:
        builder = Builder()
        y = builder.input("x", "f32", (1, 64))
        for seed in seeds:
            y = builder.add("Linear", y, builder.constant(values((64, 64), seed)))
        return builder.module(y)

    stages: list[str] = []
    given = {"calibration": {"x": np.ones((1, 1, 64), np.float32)}, "ddr_bytes": 3 * 64 * 64 - 1}
    found = refusal(stack(1, 2, 3), "i8", on_stage=lambda name, _: stages.append(name), **given)
    assert (found.code, stages) == ("CMP05", ["legalise", "layout"])
    assert found.message == "DDR has 12287 bytes, the weights alone take 12288 as i8"


@pytest.mark.parametrize("precision", ["f16", "i8"])
@pytest.mark.parametrize("pooled", [False, True])
def test_an_estimate_has_the_same_refusal(precision: Precision, pooled: bool) -> None:
    module = padded(_FAR, pooled=pooled)
    found = estimate(module, "npm4k", precision)
    assert not found.fits
    given = {"calibration": {"x": np.ones((1, 1, 1, 1, 2), np.float32)}}
    told = refusal(module, precision, **(given if precision == "i8" else {}))
    assert [(one.code, one.message) for one in found.problems] == [(told.code, told.message)]


def test_no_data_stands_in_for_an_input_larger_than_ddr() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (_FAR, _FAR))
    found = estimate(builder.module(builder.add("Relu", x)), "npm4k", "i8")
    (problem,) = found.problems
    assert problem.code == "CMP05"
    assert "each of these tensors takes more: `x_DDR` " in problem.message
    assert "`output0_DDR` " in problem.message


def test_a_few_of_many_are_named_the_largest_first() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 1, 1, 2))
    weights = builder.constant(values((1, 1, 2, 2), 1))
    pads = [_FAR + 1000 * n for n in range(8)]
    made = [builder.add("Conv", x, weights, layout="NHWC", pads=(pad,) * 4) for pad in pads]
    message = refusal(builder.module(*made)).message
    named = [message.find(f"`output{index}_DDR`") for index in (7, 6, 5, 4, 3)]
    assert named == sorted(named)
    assert min(named) > 0
    assert "`output2_DDR`" not in message
    assert message.endswith(", 3 more")


def test_the_node_of_the_model_is_named(tmp_path: Path) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="stem", pads=[100_000] * 4)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 2, 3, 3))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weights = numpy_helper.from_array(values((2, 2, 1, 1), 1), "w")
    graph = helper.make_graph([node], "g", [x], [y], [weights])
    path = tmp_path / "pad.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    found = refusal(path)
    assert (found.code, found.span.source.name) == ("CMP05", str(path))
    assert "(node `stem`)" in found.message


def test_a_model_that_just_fits_is_taken() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (8, 64))
    module = builder.module(builder.add("Relu", x))
    both = 2 * 8 * 64 * 2  # the input and the output
    assert nacre.compile(module, "npm4k", ddr_bytes=both).manifest.ddr_bytes <= both
    assert "the model needs" in refusal(module, ddr_bytes=both - 1).message  # each alone fits


def test_what_lies_between_layers_may_be_larger_than_ddr() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (64, 1))
    wide = builder.add("Linear", x, builder.constant(values((512, 1), 1)))
    wide = builder.add("Softmax", wide, axis=1)
    y = builder.add("Linear", wide, builder.constant(values((1, 512), 2)))
    ddr = 8192
    assert ddr < 64 * 512 * 2  # in L2, or in L1
    nacre.compile(builder.module(y), "npm4k", ddr_bytes=ddr)


def test_a_repeated_row_that_is_never_stored_may_be_larger_than_ddr() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 64))
    many = builder.add("Broadcast", x, shape=(_DDR, 64))
    part = builder.add("Slice", many, starts=(0, 0), ends=(2, 64), steps=(1, 1))
    module = builder.module(builder.add("Relu", part))
    assert estimate(module, "npm4k").fits
    found = refusal(module, "i8", calibration={"x": np.ones((1, 1, 64), np.float32)})
    assert found.code == "CMP05"
    told = f"calibration computes every value, and not one larger than {_DDR} elements: "
    assert found.message == f"{told}`Broadcast` {4 * 64 * _DDR} for f32[{_DDR}, 64]"


def test_bounds_do_not_look_at_every_window_in_the_padding() -> None:
    module = padded(_FAR)
    (moved,) = ddr_traffic(module, [Layer("conv_0", "window", module.operations[-1:])])
    assert moved == 4 * (2 + 4 + 2 * _HUGE**2)


def test_a_row_of_padding_is_refused_without_looking_at_every_column() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 1, 3, 1))
    weights = builder.constant(values((1, 1, 1, 1), 1))
    pads = (0, 60_000_000, 0, 60_000_000)  # 240 MB, which DDR holds
    module = builder.module(builder.add("Conv", x, weights, layout="NHWC", pads=pads))
    assert refusal(module).code == "CMP02"


def test_an_l1_that_holds_no_operand_is_refused_before_any_stage() -> None:
    known = named_device("npm4k").device
    assert known is not None
    assert known.topology is not None
    device = replace(known, topology=replace(known.topology, l1_size_bytes=63))
    stages: list[str] = []
    with pytest.raises(InputError) as caught:
        nacre.compile(padded(1), device, on_stage=lambda name, _: stages.append(name))
    (found,) = caught.value.diagnostics
    assert (found.code, stages) == ("CMP02", [])
    assert "L1 has 63 bytes, and no operand takes less than 64" in found.message
