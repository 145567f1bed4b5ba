from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from nacre.nac import load, save, to_bytes, verify
from nacre.nac.format.values import NacFile, Resource
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.interface import encode_record
from nacre.nac.program.parameters import PARAMETERS, ParameterTable
from nacre.nac.run.model import NacModel, model_of
from nacre.nac.tools.transplant import transplant
from nacre.nac.training.replacement import with_tensors
from tests.nac.files import FOLDER

RANDOM = np.random.default_rng(7)


def stack(*widths: int, prefix: str = "layers", tied: bool = False) -> NacModel:
    """Layers of such widths, each with its activation."""
    build = Assembler()
    value = build.input("x")
    first: int | None = None
    for index, (rows, columns) in enumerate(zip(widths[1:], widths, strict=False)):
        weight = RANDOM.normal(size=(rows, columns)).astype(np.float32)
        if first is None or not tied:
            first = build.weight(f"{prefix}.{index}.weight", weight)
        bias = build.weight(f"{prefix}.{index}.bias", RANDOM.normal(size=rows).astype(np.float32))
        w, b = build.parameter(first), build.parameter(bias)
        value = build.call("aten.linear.default", value, w, b, codes="TWB")
        value = build.call("aten.relu.default", value)
    build.output(value)
    return model_of(build.file())


def weights(model: NacModel) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return {name: model.weights[id_] for id_, name in model.weights.names.items()}


def test_all_weights_of_an_equal_program_are_copied() -> None:
    source, target = stack(4, 8, 8, 2), stack(4, 8, 8, 2)
    made, report = transplant(source, target)
    assert to_bytes(made.file) == to_bytes(source.file)
    assert len(report.copied) == 6
    assert report.skipped == ()
    (block,) = report.blocks
    assert (block.source, block.target) == (block.target, block.source)
    assert block.operations == ("linear", "relu") * 3
    x = {"x": RANDOM.normal(size=(3, 4)).astype(np.float32)}
    np.testing.assert_array_equal(made.run(x)[0], source.run(x)[0])


def test_only_blocks_that_fit_are_copied() -> None:
    source, target = stack(4, 8, 8, 2), stack(4, 8, 6, 2)
    made, report = transplant(source, target)
    assert [c.target for c in report.copied] == ["layers.0.weight", "layers.0.bias"]
    left = {s.target: s.reason for s in report.skipped}
    assert left == dict.fromkeys(
        ["layers.1.weight", "layers.1.bias", "layers.2.weight", "layers.2.bias"],
        "no block of the other file fits",
    )
    before, after, given = weights(target), weights(made), weights(source)
    for name in before:
        expected = given[name] if name.startswith("layers.0") else before[name]
        np.testing.assert_array_equal(after[name], expected)
    change = abs(given["layers.0.bias"].astype(float) - before["layers.0.bias"].astype(float)).max()
    assert report.copied[1].max_change == change


def test_prefixes_choose_which_layer_goes_where() -> None:
    source, target = stack(8, 8, 8, prefix="a"), stack(8, 8, 8, 8, prefix="b")
    made, report = transplant(source, target, source_prefix="a.1.", target_prefix="b.2.")
    assert [(c.source, c.target) for c in report.copied] == [
        ("a.1.weight", "b.2.weight"), ("a.1.bias", "b.2.bias"),
    ]  # fmt: skip
    np.testing.assert_array_equal(weights(made)["b.2.weight"], weights(source)["a.1.weight"])
    np.testing.assert_array_equal(weights(made)["b.0.weight"], weights(target)["b.0.weight"])


def test_a_shared_weight_is_not_given_two_values() -> None:
    source, target = stack(8, 8, 8), stack(8, 8, 8, tied=True)
    made, report = transplant(source, target)
    assert [(s.target, s.reason) for s in report.skipped] == [
        ("layers.0.weight", "two calls would give it")
    ]
    np.testing.assert_array_equal(
        weights(made)["layers.0.weight"], weights(target)["layers.0.weight"]
    )


def test_tensors_that_come_apart_have_names_of_their_own() -> None:
    """A new name may be what another parameter that comes apart is called."""
    build = Assembler()
    value = build.input("x")
    ids = [build.weight(name, np.full(2, i, np.float32)) for i, name in enumerate(("a", "b"))]
    for id_ in (ids[0], ids[0], ids[1], ids[1]):
        value = build.call("nac.add", value, build.parameter(id_))
    build.output(value)
    loads = [at for at, i in enumerate(build.file().instructions) if (i.op, i.variant) == (2, 1)]
    table = ParameterTable({loads[1]: "b", loads[3]: "b.1"})
    model = model_of(build.file(resources=[Resource(PARAMETERS, encode_record(table))]))
    first, second = model.file.data.tensors
    other = replace(first, data=np.full(2, 10, np.float32).tobytes())
    made = with_tensors(model, {(first.id, "b"): other, (second.id, "b.1"): other})
    assert [p.text for p in made.file.data.parameters] == ["a", "b", "b.1", "b.1.1"]
    assert verify(to_bytes(made.file)) == []
    np.testing.assert_array_equal(made.run({"x": np.zeros(2, np.float32)})[0], [21, 21])


FORMS = ["none", "FP16", "INT8_TENSOR", "INT8_CHANNEL", "BLOCK_FP8"]


@pytest.mark.parametrize("source", FORMS)
@pytest.mark.parametrize("target", FORMS)
def test_weights_take_the_form_of_the_file_that_they_go_to(source: str, target: str) -> None:
    taken, into = (load(FOLDER / f"mlp.{name}.v16.nac") for name in (source, target))
    made, report = transplant(taken, into)
    assert len(report.copied) == 6
    assert verify(to_bytes(made.file)) == []
    for before, after in zip(into.file.data.tensors, made.file.data.tensors, strict=True):
        assert (before.dtype, before.quant) == (after.dtype, after.quant)
    for row in report.copied:
        step = np.abs(weights(taken)[row.source]).max() / 127
        assert row.rounding <= (0 if source == target or target == "none" else step)
    if source == target or target == "none":
        for name, array in weights(made).items():
            np.testing.assert_array_equal(array, weights(taken)[name])


def test_what_is_not_finite_is_not_quantised() -> None:
    source, target = load(FOLDER / "mlp.none.v16.nac"), load(FOLDER / "mlp.INT8_TENSOR.v16.nac")
    spoilt = {**weights(source), "0.bias": np.full(256, np.inf, np.float32)}
    build = Assembler()
    value = build.input("x")
    for index, call in ((0, "relu"), (2, "tanh"), (4, None)):
        refs = [build.parameter(build.weight(f"{index}.{n}", spoilt[f"{index}.{n}"]))
                for n in ("weight", "bias")]  # fmt: skip
        value = build.call("aten.linear.default", value, *refs, codes="TWB")
        value = build.call(f"aten.{call}.default", value) if call else value
    build.output(value)
    _, report = transplant(model_of(build.file()), target)
    assert [(s.target, s.reason) for s in report.skipped] == [
        ("0.bias", "the other has elements that are not finite")
    ]


def test_other_element_types_are_left() -> None:
    def typed(dtype: type) -> NacModel:
        build = Assembler()
        x = build.input("x")
        w = build.parameter(build.weight("w", np.ones(3, dtype)))
        build.output(build.call("nac.add", x, w))
        return model_of(build.file())

    made, report = transplant(typed(np.float64), typed(np.float32))
    assert report.copied == ()
    assert "its elements are float32, those of the other float64" in report.skipped[0].reason
    assert isinstance(made.file, NacFile)


def test_external_weights_are_taken_and_given(tmp_path: Path) -> None:
    save(load(FOLDER / "mlp.INT8_CHANNEL.v16.nac"), tmp_path / "e.nac", "external")
    outside = load(tmp_path / "e.nac")
    inside = load(FOLDER / "mlp.none.v16.nac")
    made, report = transplant(outside, inside)
    assert len(report.copied) == 6
    made, report = transplant(inside, outside)
    save(made, tmp_path / "back.nac", "external")
    assert verify(tmp_path / "back.nac") == []
