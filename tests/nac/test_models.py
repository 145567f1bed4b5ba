"""Files of NAC wherever a model is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nacre
from nacre import core, nac
from nacre.base.diagnostics import InputError
from nacre.compile.estimate.estimate import estimate
from nacre.nac.mep import assemble
from nacre.nac.mep.plans import plan_text
from nacre.nac.mep.program import read
from nacre.nac.models import READERS, lift_with_shapes, read_model
from nacre.nac.program.assembly import Assembler
from nacre.nac.run.model import model_of
from tests.cli.runner import Outcome, invoke
from tests.nac.files import FIXTURES, FOLDER
from tests.nac.test_quantise import QUANTS

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]
RNG = np.random.default_rng(0)
TEXT = """
%0 = Input () {name="x"} : tensor<f32[2, 8]>
%1 = ConstTensor () {data=W, dtype=f32, shape=[4, 8]} : tensor<f32[4, 8]>
%2 = Linear (%0, %1) : tensor<f32[2, 4]>
%3 = Relu (%2) : tensor<f32[2, 4]>
outputs: %3
"""
WEIGHT = np.round(RNG.standard_normal((4, 8)), 3)
X = RNG.standard_normal((2, 8)).astype(np.float32)


def module() -> core.Module:
    return core.parse(TEXT.replace("W", str(WEIGHT.tolist())))


def saved(folder: Path, quant: str = "none", weights: str = "internal") -> Path:
    path = folder / f"{quant}.nac"
    nac.save(nac.build(module(), quant), path, weights)  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize("weights", ["internal", "external"])
@pytest.mark.parametrize("quant", ["none", *QUANTS])
def test_a_file_is_compiled_to_what_it_computes(quant: str, weights: str, tmp_path: Path) -> None:
    path = saved(tmp_path, quant, weights)
    wanted = nac.load(path).run({"x": X})[0]
    bundle = nacre.compile(path, "npm4k")
    np.testing.assert_allclose(next(iter(bundle.run({"x": X}).values())), wanted, atol=0.05)
    assert bundle.validate({"x": X}).ok


def test_a_model_of_nac_is_a_source(tmp_path: Path) -> None:
    model = nac.load(saved(tmp_path, "int8_channel"))
    wanted = model.run({"x": X})[0]
    got = nacre.compile(model, "npm4k").run({"x": X})
    np.testing.assert_allclose(next(iter(got.values())), wanted, atol=0.05)
    assert estimate(model, "npm4k").fits
    np.testing.assert_array_equal(nac.build(model).run({"x": X})[0], wanted)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_files_of_the_reference_compiler_are_read_once_their_shapes_are_said(path: Path) -> None:
    with np.load(path.with_suffix(".npz")) as arrays:
        x = arrays["in0"]
    model = nac.load(path)
    name = model.inputs[0].name
    found = read_model(path, {name: x.shape})
    got = core.evaluate(found, {name: x})[0]
    np.testing.assert_allclose(got, model.run({name: x})[0], atol=1e-5)
    with pytest.raises(InputError) as refused:
        read_model(path)
    assert [d.code for d in refused.value.diagnostics] == ["NAC46"]
    assert f'shapes={{"{name}": (' in str(refused.value.diagnostics[0].help)


def test_what_addresses_a_table_is_an_integer() -> None:
    program = Assembler()
    ids, scale = program.input("ids"), program.input("scale")
    table = program.parameter(program.weight("table", np.eye(5, dtype=np.float32)))
    moved = program.call("aten.view.default", ids, (2, 3))
    rows = program.call("aten.embedding.default", table, moved, -1, False, False)
    program.output(program.call("aten.mul.Tensor", rows, scale))
    model = model_of(program.file())
    found = lift_with_shapes(model, {"ids": (6,), "scale": (5,)})
    assert {name: type_.dtype for name, type_ in found.input_types.items()} == {
        "ids": "i64",
        "scale": "f32",
    }
    given: dict[str, Any] = {"ids": np.arange(6) % 5, "scale": np.ones(5, np.float32)}
    np.testing.assert_array_equal(
        core.evaluate(found, given)[0], model.session(optimise=False).run(given)[0]
    )


@pytest.mark.parametrize(
    ("shapes", "codes"),
    [
        ({"x": (2, 9)}, ["MDL02"]),
        ({"y": (2, 8)}, ["MDL02"]),
        ({"x": (2, 9), "y": (1,)}, ["MDL02", "MDL02"]),
    ],
)
def test_shapes_that_a_file_does_not_leave_open(
    shapes: dict[str, tuple[int, ...]], codes: list[str], tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        nacre.compile(saved(tmp_path), "npm4k", shapes=shapes)
    assert [d.code for d in refused.value.diagnostics] == codes
    assert read_model(saved(tmp_path), {"x": (2, 8)}).input_types["x"].shape == (2, 8)


VERBS = (
    "core verify --profile nacre-1 m.nac",
    "core canon m.nac",
    "core grad m.nac --wrt x -o g.core",
    "core stats m.nac --layers",
    "core eval m.nac --input x=x.npy",
    "core convert m.nac -o c.core",
    "core convert m.nac -o c.onnx",
    "nac build m.nac -o again.nac",
    "nac build m.nac -o again.nac --weights external",
    "nac convert m.nac -o again.core",
    "compile m.nac --device npm4k -o bundle",
    "estimate m.nac --device npm4k --precision i8",
)


@pytest.mark.parametrize("arguments", VERBS)
def test_every_verb_that_takes_a_model_takes_a_file(
    arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    nac.save(nac.build(module(), "int8_tensor"), Path("m.nac"))
    np.save("x.npy", X)
    outcome: Outcome = invoke(capsys, *arguments.split())
    assert outcome.status == 0, outcome.text


@pytest.mark.heavy("imports onnx and compiles")
@pytest.mark.parametrize("verb", ["core canon", "core grad --wrt input", "core verify"])
def test_shapes_are_given_to_every_verb(verb: str, capsys: Capsys) -> None:
    path = FOLDER / "mlp.INT8_CHANNEL.v16.nac"
    assert invoke(capsys, *verb.split(), path).status == 1
    given = ("--shape", "input=4x64")
    if verb == "core verify":
        given = (*given, "--profile", "nacre-1")  # type: ignore[assignment]
    assert invoke(capsys, *verb.split(), path, *given).status == 0


def test_a_file_of_a_file_carries_what_the_first_one_does(tmp_path: Path) -> None:
    plan = read(assemble(plan_text("greedy"), "p"))
    first = nac.build(module(), resources={"notes.txt": b"kept"}, plan=plan, d_model=7)
    path = tmp_path / "m.nac"
    nac.save(first, path)
    again = nac.build(path)
    assert again.file.plan == plan
    assert again.file.resource("notes.txt") == b"kept"
    assert again.file.header.d_model == 7
    replaced = nac.build(path, resources={"notes.txt": b"new"}, d_model=9)
    assert replaced.file.resource("notes.txt") == b"new"
    assert replaced.file.header.d_model == 9


def test_weights_are_not_quantised_twice(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="already"):
        nac.build(saved(tmp_path, "int8_tensor"), "block_fp8")


def test_readers_of_core_are_readers_here() -> None:
    from nacre.core.models import READERS as KNOWN

    assert {*KNOWN, ".nac"} == set(READERS)
