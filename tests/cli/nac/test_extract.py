"""`nacre nac extract`, `genome` and `transplant`."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from nacre.nac import load, save, to_bytes, verify
from nacre.nac.format.file import write
from nacre.nac.format.values import NacFile, Plan, Resource, constant
from tests.cli.runner import invoke, nacre, without_privileges
from tests.nac.files import FOLDER, changed, small

Capsys = pytest.CaptureFixture[str]
MLP = FOLDER / "mlp.none.v16.nac"


def full(*names: str) -> NacFile:
    """A file with everything in it."""
    resources = tuple(Resource(name, b"data of " + name.encode()) for name in names)
    plan = Plan(b"\x04\x01\x01\x00\xff", (constant(1, "word"),))
    return changed(small(), RSRC=resources, PROC=b"TISA\x01", ORCH=plan)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(full("vocab.b", "notes.txt"), "full.nac")
    return tmp_path


def tree() -> list[str]:
    return sorted(str(Path(root, name)) for root, _, names in os.walk(".") for name in names)


def test_everything_is_written(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "extract", "full.nac", "-o", "out")
    assert (outcome.status, outcome.err) == (0, "")
    assert Path("out/resources/vocab.b").read_bytes() == b"data of vocab.b"
    assert Path("out/tokenizer.tisa").read_bytes() == b"TISA\x01"
    assert Path("out/plan.orch").read_bytes().startswith(b"ORCH\x05\0\0\0\x01\0\0\0\x04\x01")
    assert '"word"' in Path("out/plan.txt").read_text()
    arrays = load_file("out/weights.safetensors")
    np.testing.assert_array_equal(
        arrays["layer.weight"], np.arange(6, dtype=np.float32).reshape(2, 3)
    )
    written = [line.split()[1].rstrip(":") for line in outcome.out.splitlines()]
    assert sorted(written) == [n for n in tree() if n.startswith("out/")]


def test_parts_are_chosen(capsys: Capsys) -> None:
    outcome = invoke(
        capsys, "nac", "extract", "full.nac", "-o", "out", "--part", "resources", "--format", "json"
    )
    assert json.loads(outcome.out) == {
        "folder": "out",
        "files": {"resources/vocab.b": 15, "resources/notes.txt": 17},
    }
    assert [n for n in tree() if "out" in n] == [
        "out/resources/notes.txt", "out/resources/vocab.b",
    ]  # fmt: skip


@pytest.mark.parametrize("quant", ["FP16", "INT8_TENSOR", "INT8_CHANNEL", "BLOCK_FP8"])
def test_weights_as_stored_and_as_seen(capsys: Capsys, quant: str) -> None:
    path = FOLDER / f"mlp.{quant}.v16.nac"
    assert invoke(capsys, "nac", "extract", path, "-o", "raw").status == 0
    raw = load_file("raw/weights.safetensors")
    assert {a.dtype for a in raw.values()} == {np.dtype("f2" if quant == "FP16" else "i1")}
    assert invoke(capsys, "nac", "extract", path, "-o", "seen", "--dequantise").status == 0
    seen = load_file("seen/weights.safetensors")
    weights = load(path).weights
    for id_, name in weights.names.items():
        np.testing.assert_array_equal(seen[name], weights[id_])


def test_extracted_weights_are_those_beside_a_file(capsys: Capsys) -> None:
    save(load(FOLDER / "mlp.BLOCK_FP8.v16.nac"), "e.nac", "external")
    assert invoke(capsys, "nac", "extract", "e.nac", "-o", "out").status == 0
    assert Path("out/weights.safetensors").read_bytes() == Path("e.safetensors").read_bytes()


@pytest.mark.parametrize(
    "name", ["../evil", "/tmp/evil", "a/b", "..", ".", "", "c:evil", "a\\b", "a\x00b", "a\nb"]
)
def test_names_cannot_lead_out_of_the_folder(capsys: Capsys, name: str) -> None:
    Path("evil.nac").write_bytes(to_bytes(full("good", name)))
    before = tree()
    outcome = invoke(capsys, "nac", "extract", "evil.nac", "-o", "out")
    assert (outcome.status, outcome.out) == (1, "")
    assert "error[NAC16]" in outcome.err
    assert tree() == before
    assert not Path("out").exists()


def test_a_name_that_the_system_refuses_leaves_nothing(capsys: Capsys) -> None:
    Path("long.nac").write_bytes(to_bytes(full("x" * 300)))
    before = tree()
    outcome = invoke(capsys, "nac", "extract", "long.nac", "-o", "out")
    assert outcome.status == 2
    assert "cannot write out: File name too long" in outcome.err
    assert (tree(), Path("out").exists()) == (before, False)


def test_a_folder_with_files_in_it_is_left_alone(capsys: Capsys, folder: Path) -> None:
    (folder / "out").mkdir()
    assert invoke(capsys, "nac", "extract", "full.nac", "-o", "out").status == 0
    outcome = invoke(capsys, "nac", "extract", "full.nac", "-o", "out")
    assert (outcome.status, outcome.err) == (
        2,
        "nacre: cannot write to out: the folder is not empty\n",
    )
    outcome = invoke(capsys, "nac", "extract", "full.nac", "-o", "none/out")
    assert "none is no folder" in outcome.err
    (folder / "shut").mkdir(mode=0o500)
    failed = nacre("nac", "extract", "full.nac", "-o", "shut/out", before=without_privileges)
    assert (failed.status, failed.err) == (2, "nacre: cannot write shut/out: Permission denied\n")


def test_a_file_without_that_part(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "extract", MLP, "-o", "out", "--part", "plan")
    assert outcome.status == 0
    assert "carries nothing of that" in outcome.out
    assert not Path("out").exists()


# Genomes


def test_one_file_has_genes_and_blocks(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "genome", FOLDER / "cnn.none.v16.shim.nac")
    assert outcome.status == 0
    lines = outcome.out.splitlines()
    assert lines[0].startswith("cnn.none.v16.shim: ")
    assert lines[0].endswith(", 10 calls")
    assert any(line.endswith("ConvBlock 2, Classifier 1") for line in lines)
    assert lines[3].endswith("2 times: conv2d _native_batch_norm_legit_no_training relu")


def test_a_folder_gives_a_tree(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "genome", FOLDER, "--newick", "t.nwk", "--svg", "t.svg")
    assert outcome.status == 0
    text = Path("t.nwk").read_text()
    assert text.strip() in outcome.out
    assert text.startswith("(('cnn.none.v16.shim':0,'cnn.none.v18.shim':0):")
    drawn = ET.parse("t.svg").getroot()
    shown = {e.text for e in drawn.iter() if e.tag.endswith("text")}
    assert {path.stem for path in FOLDER.glob("*.nac")} <= shown


def test_genomes_as_json(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "genome", MLP, "full.nac", MLP, "--format", "json")
    made = json.loads(outcome.out)
    assert [g["name"] for g in made["genomes"]] == ["mlp.none.v16", "full"]
    assert made["similarity"][0][0] == 1
    assert made["similarity"][0][1] == made["similarity"][1][0] < 1
    counts = {g["genes"][0]: g["count"] for g in made["genomes"][0]["grams"][0]}
    assert counts == {"linear": 3, "relu": 1, "tanh": 1}


def test_a_folder_without_files(capsys: Capsys, folder: Path) -> None:
    (folder / "empty").mkdir()
    outcome = invoke(capsys, "nac", "genome", "empty")
    assert (outcome.status, outcome.err) == (2, "nacre: empty has no `.nac` files\n")


# Transplants

ONE = """%0 = Input () {name="x"} : tensor<f32[2, 3]>
%1 = ConstTensor () {data=[1.0, 0.5, 2.0], dtype=f32, shape=[3]} : tensor<f32[3]>
%2 = Mul (%0, %1) : tensor<f32[2, 3]>
outputs: %2
"""


def test_weights_are_transplanted_with_a_report(capsys: Capsys) -> None:
    other = FOLDER / "mlp.INT8_TENSOR.v16.nac"
    outcome = invoke(capsys, "nac", "transplant", other, MLP, "-o", "t.nac")
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "block: instructions 3 to 11 into 3 to 11, 5 calls"
    assert lines[-2:] == ["6 weights copied, 0 left as they were", "wrote t.nac"]
    assert verify("t.nac") == []
    made, given = load("t.nac").weights, load(other).weights
    for id_ in given.names:
        np.testing.assert_array_equal(made[id_], given[id_])


@pytest.mark.parametrize("format_", ["text", "json"])
def test_a_transplant_that_copies_nothing_says_so(capsys: Capsys, format_: str) -> None:
    Path("one.core").write_text(ONE)
    assert invoke(capsys, "nac", "build", "one.core", "-o", "one.nac").status == 0
    outcome = invoke(
        capsys, "nac", "transplant", "one.nac", MLP, "-o", "t.nac", "--format", format_
    )
    assert outcome.status == 0
    said = "nacre: note: no weight was copied, t.nac has those of"
    assert outcome.err.startswith(said)
    for id_ in load(MLP).weights.names:
        np.testing.assert_array_equal(load("t.nac").weights[id_], load(MLP).weights[id_])


def test_a_transplant_as_json_with_prefixes(capsys: Capsys) -> None:
    other = FOLDER / "mlp.FP16.v16.nac"
    outcome = invoke(
        capsys, "nac", "transplant", other, MLP, "-o", "t.nac", "--from", "0.", "--into", "0.",
        "--format", "json",
    )  # fmt: skip
    made = json.loads(outcome.out)
    assert [c["target"] for c in made["copied"]] == ["0.weight", "0.bias"]
    assert made["skipped"] == []
    assert invoke(capsys, "nac", "transplant", MLP, MLP, "-o", "t.bin").status == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--from", "nope"), "--from: of a.nac, no weight begins with `nope`"),
        (("--into", "nope"), "--into: of b.nac, no weight begins with `nope`"),
        (("--from", "0.", "--into", "0.wieght"), "did you mean `0.weight`?"),
        (("--from", "1.weight"), "did you mean `0.weight`?"),
    ],
)
def test_a_prefix_that_no_weight_has_is_wrong_usage(
    capsys: Capsys, given: tuple[str, ...], told: str
) -> None:
    for name in ("a.nac", "b.nac"):
        Path(name).write_bytes(Path(MLP).read_bytes())
    outcome = invoke(capsys, "nac", "transplant", "a.nac", "b.nac", "-o", "c.nac", *given)
    assert (outcome.status, outcome.out) == (2, "")
    assert told in outcome.err
    assert not Path("c.nac").exists()
