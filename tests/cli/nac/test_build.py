"""`nacre nac build` and `convert`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from nacre import core
from nacre.core.builder import Builder
from nacre.nac import build, load, read, save, verify
from tests.cli.runner import invoke, nacre, without_privileges
from tests.nac.files import FOLDER

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]
MLP = FOLDER / "mlp.none.v16.nac"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(3)
    build = Builder()
    x = build.input("x", "f32", (2, 64))
    weight = build.constant(random.normal(size=(32, 64)).astype(np.float32))
    bias = build.constant(random.normal(size=(32,)).astype(np.float32))
    y = build.add("Linear", x, weight, bias)
    core.save(build.module(build.add("Relu", y)), "m.core")
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "empty.mep").write_text("")
    (tmp_path / "said.mep").write_text("; nothing\n")
    np.save("x.npy", random.normal(size=(2, 64)).astype(np.float32))
    return tmp_path


def files() -> set[str]:
    return set(os.listdir())


def evaluated() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return core.evaluate(core.load("m.core"), {"x": np.load("x.npy")})[0]


def test_a_model_is_built(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "build", "m.core", "-o", "m.nac")
    assert (outcome.status, outcome.err) == (0, "")
    size = Path("m.nac").stat().st_size
    assert outcome.out == f"wrote m.nac: 2 calls, 2 weights, {size:,} bytes\n"
    assert verify("m.nac") == []
    np.testing.assert_array_equal(load("m.nac").run({"x": np.load("x.npy")})[0], evaluated())
    first = Path("m.nac").read_bytes()
    assert invoke(capsys, "nac", "build", "m.core", "-o", "m.nac").status == 0
    assert Path("m.nac").read_bytes() == first


@pytest.mark.parametrize("quant", ["FP16", "INT8_TENSOR", "Int8_Channel", "BLOCK_FP8", "NONE"])
def test_a_quantisation_is_named_in_any_case(capsys: Capsys, quant: str) -> None:
    assert invoke(capsys, "nac", "build", "m.core", "-o", "q.nac", "--quant", quant).status == 0
    made = load("q.nac").file.header.quant
    assert made == build("m.core", quant).file.header.quant
    outcome = invoke(capsys, "nac", "convert", "m.core", "-o", "c.nac", "--quant", quant)
    assert outcome.status == 0
    assert load("c.nac").file.header.quant == made


@pytest.mark.parametrize(
    "quant", ["fp16", "int8_tensor", "int8_channel", "block_fp8", "int4_group"]
)
def test_quantised_files_are_built(capsys: Capsys, quant: str) -> None:
    outcome = invoke(capsys, "nac", "build", "m.core", "-o", "q.nac", "--quant", quant)
    assert outcome.status == 0
    assert f"{quant.upper()}: " in outcome.out.splitlines()[-1]
    assert verify("q.nac") == []
    made = load("q.nac").run({"x": np.load("x.npy")})[0]
    np.testing.assert_allclose(made, evaluated(), atol=2 if quant == "int4_group" else 0.5)


def test_a_report_has_a_line_a_weight(capsys: Capsys) -> None:
    arguments = ("nac", "build", "m.core", "-o", "q.nac", "--quant", "int8_channel")
    outcome = invoke(capsys, *arguments, "--report")
    assert len(outcome.out.splitlines()) == 1 + 2 + 1
    outcome = invoke(capsys, *arguments, "--format", "json")
    made = json.loads(outcome.out)
    assert made["inputs"] == [{"name": "x", "dtype": "f32", "shape": [2, 64]}]
    assert [row["stored"] for row in made["quantised"]] == ["INT8_CHANNEL", "INT8_TENSOR"]
    name = made["quantised"][1]["name"]
    outcome = invoke(capsys, *arguments, "--keep", name, "--format", "json")
    assert [row["stored"] for row in json.loads(outcome.out)["quantised"]][1] == "kept"


@pytest.mark.parametrize("verb", ["build", "convert"])
def test_operations_are_those_of_info(capsys: Capsys, verb: str) -> None:
    outcome = invoke(capsys, "nac", verb, "m.core", "-o", "m.nac", "--format", "json")
    operations = json.loads(outcome.out)["operations"]
    assert sum(operations.values()) == 2
    info = invoke(capsys, "nac", "info", "m.nac", "--format", "json")
    assert json.loads(info.out)["operations"] == operations


def test_external_weights_and_resources(capsys: Capsys) -> None:
    outcome = invoke(
        capsys, "nac", "build", "m.core", "-o", "e.nac", "--weights", "external",
        "--resource", "notes.txt",
    )  # fmt: skip
    assert outcome.status == 0
    sizes = {path: f"{Path(path).stat().st_size:,} bytes" for path in ("e.nac", "e.safetensors")}
    assert outcome.out.splitlines() == [
        f"wrote e.nac: 2 calls, 2 weights, {sizes['e.nac']}",
        f"wrote e.safetensors: {sizes['e.safetensors']}",
    ]
    assert bytes(read("e.nac").resource("notes.txt") or b"") == b"notes"
    assert verify("e.nac") == []
    np.testing.assert_array_equal(load("e.nac").run({"x": np.load("x.npy")})[0], evaluated())


def test_weights_of_somebody_else_are_not_written_over(capsys: Capsys) -> None:
    """The `.safetensors` of a name is written over only where the `.nac` of it refers to it."""
    build = ("nac", "build", "m.core", "-o", "e.nac", "--weights", "external")
    assert invoke(capsys, *build).status == 0
    weights = Path("e.safetensors").read_bytes()
    assert invoke(capsys, *build, "--quant", "fp16").status == 0  # its own
    assert Path("e.safetensors").read_bytes() != weights
    for is_there in (b"", b"not mine", weights):
        for file in (None, b"no file", Path(MLP).read_bytes()):
            Path("e.nac").unlink(missing_ok=True)
            if file is not None:
                Path("e.nac").write_bytes(file)
            Path("e.safetensors").write_bytes(is_there)
            outcome = invoke(capsys, *build)
            assert (outcome.status, outcome.out) == (2, "")
            assert "`e.safetensors` is there already and is not the weights of" in outcome.err
            assert "choose another name, or remove it" in outcome.err
            assert Path("e.safetensors").read_bytes() == is_there
            assert (Path("e.nac").read_bytes() if Path("e.nac").exists() else None) == file
    Path("e.safetensors").unlink()
    outcome = invoke(capsys, *build, "--format", "json")
    made = json.loads(outcome.out)
    assert made["weights"] == [{"path": "e.safetensors", "bytes": len(weights)}]
    Path("n.safetensors").write_bytes(b"not mine")
    with pytest.raises(FileExistsError, match="not the weights of such a file"):
        save(load("e.nac"), "n.nac", "external")
    assert "n.nac" not in files()


def test_a_tokenizer_is_compiled_into_the_file(capsys: Capsys) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({"[UNK]": 0, "hello": 1, "##s": 2}, unk_token="[UNK]")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    Path("words").mkdir()
    made.save("words/tokenizer.json")
    outcome = invoke(capsys, "nac", "build", "m.core", "-o", "t.nac", "--tokenizer", "words")
    assert (outcome.status, outcome.err) == (0, "")
    file = read("t.nac")
    assert bytes(file.sections["PROC"]).startswith(b"TISA")
    assert "vocab.b" in [resource.name for resource in file.resources]
    outcome = invoke(capsys, "nac", "extract", "t.nac", "-o", "out")
    assert Path("out/tokenizer.tisa").read_bytes() == bytes(file.sections["PROC"])
    assert "wordpiece" in Path("out/tokenizer.txt").read_text().lower()


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("none.core", "-o", "m.nac"), 2, "none.core does not exist"),
        (("m.core", "-o", "m.bin"), 2, "expected a name in `.nac`"),
        (("m.core", "-o", "none/m.nac"), 2, "none is no folder"),
        (("m.core", "-o", "m.nac", "--quant", "int4"), 2, "'int4' is not one of"),
        (("m.core", "-o", "m.nac", "--resource", "none"), 2, "none does not exist"),
        (("m.core", "-o", "m.nac", "--tokenizer", "none"), 2, "none does not exist"),
        (("m.core", "-o", "m.nac", "--keep", "c1"), 2, "without --quant nothing is"),
        (("m.core", "-o", "m.nac", "--report"), 2, "without --quant it does none"),
        (("m.core", "-o", "m.nac", "--unlimited"), 2, "without --tokenizer there is none"),
        (("m.core", "-o", "m.nac", "--plan", "empty.mep"), 1, "error[NAC80]"),
        (("m.core", "-o", "m.nac", "--plan", "said.mep"), 1, "the plan has no instructions"),
        (("m.core", "-o", "m.nac", "--quant", "fp16", "--keep", "zz"), 1, "error[NAC50]"),
        (("m.core", "-o", "m.nac", "--shape", "x=1x64"), 1, "error[MDL02]"),
        (("notes.txt", "-o", "m.nac"), 1, "error["),
    ],
)
def test_what_cannot_be_built_leaves_no_file(
    capsys: Capsys, arguments: tuple[str, ...], status: int, told: str
) -> None:
    before = files()
    outcome = invoke(capsys, "nac", "build", *arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert told in outcome.err
    assert files() == before


def test_a_folder_that_may_not_be_written(folder: Path) -> None:
    (folder / "shut").mkdir(mode=0o500)
    outcome = nacre("nac", "build", "m.core", "-o", "shut/m.nac", before=without_privileges)
    assert (outcome.status, outcome.err) == (
        2,
        "nacre: cannot write shut/m.nac: Permission denied\n",
    )


# Other forms


def test_there_and_back_is_the_same_module(capsys: Capsys) -> None:
    assert invoke(capsys, "nac", "convert", "m.core", "-o", "m.nac").status == 0
    outcome = invoke(capsys, "nac", "convert", "m.nac", "-o", "back.core")
    assert outcome.out == f"wrote back.core: {len(core.load('m.core'))} operations\n"
    canonical = core.canonicalise(core.load("m.core"))
    assert core.load("back.core") == canonical
    printed = invoke(capsys, "nac", "convert", "m.nac", "--to", "core")
    assert printed.out == str(canonical)


def test_to_onnx_and_back(capsys: Capsys) -> None:
    pytest.importorskip("onnx")
    assert invoke(capsys, "nac", "build", "m.core", "-o", "m.nac").status == 0
    assert invoke(capsys, "nac", "convert", "m.nac", "-o", "m.onnx").status == 0
    assert invoke(capsys, "nac", "convert", "m.onnx", "-o", "o.nac").status == 0
    model = load("o.nac")
    made = model.run({model.inputs[0].name: np.load("x.npy")})[0]
    np.testing.assert_allclose(made, evaluated(), rtol=1e-6, atol=1e-6)


def test_types_that_a_file_does_not_say_are_given(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "convert", MLP, "-o", "mlp.core")
    assert outcome.status == 1
    assert "error[NAC46]" in outcome.err
    assert "give it: `--type NAME=f32[1,3]`" in outcome.err
    outcome = invoke(capsys, "nac", "convert", MLP, "-o", "mlp.core", "--type", "input=f32[4,64]")
    assert outcome.status == 0
    given = np.random.default_rng(5).normal(size=(4, 64)).astype(np.float32)
    made = core.evaluate(core.load("mlp.core"), {"input": given})[0]
    np.testing.assert_array_equal(made, load(MLP).run({"input": given})[0])


def test_weights_move_out_and_in(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "convert", MLP, "-o", "e.nac", "--weights", "external")
    assert outcome.status == 0
    assert "e.safetensors" in files()
    assert invoke(capsys, "nac", "convert", "e.nac", "-o", "kept.nac").status == 0
    assert "kept.safetensors" in files()
    outcome = invoke(capsys, "nac", "convert", "e.nac", "-o", "i.nac", "--weights", "internal")
    assert outcome.status == 0
    assert Path("i.nac").read_bytes() == MLP.read_bytes()


def test_a_file_is_quantised(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "convert", MLP, "-o", "q.nac", "--quant", "int8_channel")
    assert outcome.status == 0
    assert verify("q.nac") == []
    assert Path("q.nac").stat().st_size < MLP.stat().st_size / 3
    outcome = invoke(capsys, "nac", "convert", "q.nac", "-o", "r.nac", "--quant", "fp16")
    assert outcome.status == 1
    assert "error[NAC50]" in outcome.err
    assert "r.nac" not in files()


@pytest.mark.parametrize(
    "quant", ["fp16", "int8_tensor", "int8_channel", "block_fp8", "int4_group"]
)
@pytest.mark.parametrize("where", ["internal", "external"])
def test_a_quantised_file_is_unpacked(capsys: Capsys, quant: str, where: str) -> None:
    """The weights are what the program computed with before, and stay where they were."""
    convert = ("nac", "convert", MLP, "-o", "q.nac", "--quant", quant, "--weights", where)
    assert invoke(capsys, *convert).status == 0
    assert invoke(capsys, "nac", "convert", "q.nac", "-o", "p.nac", "--quant", "none").status == 0
    assert invoke(capsys, "nac", "convert", "q.nac", "-o", "k.nac").status == 0
    made, packed = load("p.nac"), load("q.nac")
    assert (made.file.header.quant, load("k.nac").file.header.quant) == (
        0,
        packed.file.header.quant,
    )
    assert packed.file.header.quant
    assert ("p.safetensors" in files()) == (where == "external")
    assert verify("p.nac") == []
    for id_ in packed.weights.names:
        assert made.weights.tensor(id_).quant == 0
        assert made.weights[id_].dtype == packed.weights[id_].dtype
        np.testing.assert_array_equal(made.weights[id_], packed.weights[id_])
    given = {"input": np.random.default_rng(5).normal(size=(4, 64)).astype(np.float32)}
    np.testing.assert_array_equal(made.run(given)[0], packed.run(given)[0])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("m.core", "-o", "m.onnx"), "neither of the files is a `.nac`"),
        ((str(MLP),), "nothing says what to convert to"),
        ((str(MLP), "-o", "m.bin"), "nothing says what to convert to"),
        ((str(MLP), "-o", "m.core", "--to", "onnx"), "--to says onnx, the name `m.core` says core"),
        ((str(MLP), "--to", "core", "--shape", "input=4x64"), "are for what becomes a `.nac`"),
        ((str(MLP), "-o", "n.nac", "--shape", "input=4x64"), "--shape is for models"),
        (("m.core", "-o", "m.nac", "--type", "x=f32[2]"), "--type is for what is made of a `.nac`"),
        ((str(MLP), "--to", "onnx", "--type", "input"), "does not have the form NAME=TYPE"),
        ((str(MLP), "--to", "core", "--type", "inptu=f32[2,64]"), "did you mean `input`?"),
        ((str(MLP), "--to", "core", "--type", "y=f32[2]"), "no input `y`; expected `input`"),
        ((str(MLP), "--to", "core", "--quant", "none"), "are for what becomes a `.nac`"),
    ],
)
def test_wrong_usage_says_what_is_possible(
    capsys: Capsys, arguments: tuple[str, ...], told: str
) -> None:
    before = files()
    outcome = invoke(capsys, "nac", "convert", *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert told in outcome.err
    assert files() == before


def test_a_type_that_the_file_says_otherwise_is_wrong_usage(capsys: Capsys) -> None:
    assert invoke(capsys, "nac", "build", "m.core", "-o", "m.nac").status == 0
    same = invoke(capsys, "nac", "convert", "m.nac", "--to", "core", "--type", "x=f32[2,64]")
    assert same.status == 0
    outcome = invoke(capsys, "nac", "convert", "m.nac", "--to", "core", "--type", "x=f32[3,64]")
    assert (outcome.status, outcome.out) == (2, "")
    assert "the file says tensor<f32[2, 64]>, found tensor<f32[3, 64]>" in outcome.err


def test_a_type_that_is_none_is_found(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "convert", MLP, "--to", "core", "--type", "input=f33[2]")
    assert outcome.status == 1
    assert "error[LOW06]" in outcome.err
