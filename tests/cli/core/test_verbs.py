from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import core
from nacre.core.builder import Builder
from nacre.core.module import Labels
from nacre.core.onnx_export.export import to_onnx
from nacre.core.passes.runner import PIPELINE
from tests.cli.runner import invoke, nacre, nacre_here

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]

LAYER = """\
%0 = Input () {name="x"} : tensor<f32[2, 3]>
%1 = Input () {name="w"} : tensor<f32[3, 4]>
%2 = Input () {name="b"} : tensor<f32[4]>
%3 = MatMul (%0, %1) : tensor<f32[2, 4]>
%4 = BinOp (%3, %2) {op=Add} : tensor<f32[2, 4]>
%5 = Relu (%4) : tensor<f32[2, 4]>
outputs: %5
"""
WRONG = LAYER.replace("%3 = MatMul (%0, %1)", "%3 = MatMul (%1, %0)")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.arange(12, dtype=np.float32).reshape(3, 4) - 6
B = np.array([0.5, -1, 2, 100], np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.core").write_text(LAYER)
    (tmp_path / "wrong.core").write_text(WRONG)
    for name, array in (("x", X), ("w", W), ("b", B)):
        np.save(tmp_path / f"{name}.npy", array)
    return tmp_path


INPUTS = ("--input", "x=x.npy", "--input", "w=w.npy", "--input", "b=b.npy")


# verify


def test_a_module_without_mistakes_is_verified(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "verify", "m.core")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == "verified 1 module: no problems\n"


def test_a_mistake_is_shown_with_its_line(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "verify", "m.core", "wrong.core")
    assert outcome.status == 1
    assert "error[MAT02]" in outcome.out
    assert "--> wrong.core:4:1" in outcome.out
    assert outcome.out.endswith("verified 2 modules: 1 error\n")


def test_findings_are_given_as_json(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "verify", "wrong.core", "--format", "json")
    (found,) = json.loads(outcome.out)["diagnostics"]
    assert (outcome.status, found["code"], found["line"]) == (1, "MAT02", 4)


def test_the_profile_decides_which_element_types_there_are(capsys: Capsys) -> None:
    Path("half.core").write_text(LAYER.replace("f32", "f16"))
    assert invoke(capsys, "core", "verify", "half.core").status == 1
    assert invoke(capsys, "core", "verify", "half.core", "--profile", "nacre-1").status == 0


def test_a_syntax_error_is_a_finding(capsys: Capsys) -> None:
    Path("bad.core").write_text("%0 = \noutputs: %0\n")
    outcome = invoke(capsys, "core", "verify", "bad.core")
    assert outcome.status == 1
    assert "bad.core:1:" in outcome.out


def test_a_missing_file_is_wrong_usage_and_the_others_are_verified(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "verify", "nowhere.core", "m.core")
    assert outcome.status == 2
    assert outcome.err == "nacre: nowhere.core does not exist\n"
    assert outcome.out == "verified 1 module: no problems\n"


def test_a_module_is_read_from_standard_input() -> None:
    outcome = nacre("core", "verify", "-", stdin=LAYER.encode())
    assert (outcome.status, outcome.out) == (0, "verified 1 module: no problems\n")


def test_standard_input_that_is_no_text_is_a_finding() -> None:
    outcome = nacre_here("core", "verify", "-", stdin=b"\xff\xfe")
    assert outcome.status == 1
    assert "<stdin>" in outcome.out


# canon


def test_the_canonical_form_is_printed(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "canon", "m.core")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == LAYER.replace("(%3, %2)", "(%2, %3)")


def test_the_canonical_form_is_written_whole(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "canon", "m.core", "-o", "c.core")
    assert (outcome.status, outcome.out) == (0, "wrote c.core: 6 operations\n")
    assert core.load("c.core") == core.canonicalise(core.parse(LAYER))


def test_the_passes_are_listed_without_a_file(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "canon", "--list-passes")
    assert outcome.status == 0
    names = [line.split()[0] for line in outcome.out.splitlines()]
    assert names == [one.name for one in PIPELINE]


def test_the_pipeline_can_stop_early_and_show_its_steps(capsys: Capsys) -> None:
    outcome = invoke(
        capsys, "core", "canon", "m.core", "--until", "hoist-inputs", "--print-after",
        "hoist-inputs",
    )  # fmt: skip
    assert (outcome.status, outcome.out) == (0, LAYER)
    assert outcome.err == f"# after hoist-inputs\n{LAYER}\n"


@pytest.mark.parametrize("option", ["--until", "--print-after"])
def test_an_unknown_pass_is_wrong_usage(capsys: Capsys, option: str) -> None:
    outcome = invoke(capsys, "core", "canon", "m.core", option, "dead-cod")
    assert outcome.status == 2
    assert "no pass `dead-cod`; did you mean `dead-code`?" in outcome.err


def test_a_wrong_module_has_no_canonical_form(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "canon", "wrong.core", "-o", "c.core")
    assert (outcome.status, outcome.out) == (1, "")
    assert "error[MAT02]" in outcome.err
    assert not Path("c.core").exists()


def test_a_folder_that_is_missing_is_wrong_usage(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "canon", "m.core", "-o", "none/c.core")
    assert outcome.status == 2
    assert outcome.err == "nacre: cannot write none/c.core: none is no folder; make it first\n"


# lower


def test_an_expression_becomes_a_module(capsys: Capsys) -> None:
    outcome = invoke(
        capsys, "core", "lower", "relu(x @ w + b)",
        "--input", "x=f32[2,3]", "--input", "w=f32[3,4]", "--input", "b=f32[4]",
    )  # fmt: skip
    assert (outcome.status, outcome.out) == (0, LAYER)


def test_a_lowered_module_is_written_and_read_back(capsys: Capsys) -> None:
    lowered = invoke(capsys, "core", "lower", "x + 1.0", "--input", "x=f32[2]", "-o", "l.core")
    assert (lowered.status, lowered.out) == (0, "wrote l.core: 3 operations\n")
    assert invoke(capsys, "core", "verify", "l.core").status == 0


def test_a_wrong_expression_is_a_finding_in_the_expression(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "lower", "relu(x @ y", "--input", "x=f32[2,3]")
    assert (outcome.status, outcome.out) == (1, "")
    assert "<expression>:1:" in outcome.err


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["x"], "does not have the form NAME=TYPE"),
        (["x=f32[2]", "x=f32[3]"], "input `x` is given twice"),
    ],
)
def test_inputs_that_make_no_sense_are_wrong_usage(
    capsys: Capsys, inputs: list[str], message: str
) -> None:
    options = [part for text in inputs for part in ("--input", text)]
    outcome = invoke(capsys, "core", "lower", "x", *options)
    assert outcome.status == 2
    assert message in outcome.err


# eval


def test_outputs_are_printed_and_written(capsys: Capsys) -> None:
    outcome = invoke(
        capsys, "core", "eval", "m.core", *INPUTS, "--output", "all.npz", "--output", "0=y.npy",
        "--peak",
    )  # fmt: skip
    expected = np.maximum(X @ W + B, 0)
    assert (outcome.status, outcome.err) == (0, "")
    shown = np.array2string(expected)
    # Inputs and constants are 24 + 48 + 16 bytes, the product 32.
    assert outcome.out == (
        f"output output0: %5 tensor<f32[2, 4]>\n{shown}\n"
        "peak: 120 bytes\nwrote all.npz\nwrote y.npy\n"
    )
    np.testing.assert_array_equal(np.load("y.npy"), expected)
    with np.load("all.npz") as written:
        assert list(written) == ["output0"]
        np.testing.assert_array_equal(written["output0"], expected)


def test_outputs_go_by_the_names_of_the_model(capsys: Capsys) -> None:
    module = Builder()
    x = module.input("x", "f32", (2, 3))
    named = module.module(module.add("Relu", x), module.add("Neg", x))
    named = replace(named, labels=Labels(outputs=("kept", "a/turned:0")))
    to_onnx(named, "n.onnx")
    targets = ("--output", "a/turned:0=t.npy", "--output", "0=k.npy", "--output", "all.npz")
    outcome = invoke(capsys, "core", "eval", "n.onnx", "--input", "x=x.npy", *targets)
    assert (outcome.status, outcome.err) == (0, "")
    assert "output kept: %" in outcome.out
    np.testing.assert_array_equal(np.load("t.npy"), -X)
    np.testing.assert_array_equal(np.load("k.npy"), np.maximum(X, 0))
    with np.load("all.npz") as written:
        assert list(written) == ["kept", "a/turned:0"]
    wrong = invoke(capsys, "core", "eval", "n.onnx", "--input", "x=x.npy", "--output", "kep=k.npy")
    assert (wrong.status, "no output `kep`" in wrong.err) == (2, True)
    assert "did you mean `kept`" in wrong.err


def test_a_long_output_is_shown_by_its_ends(capsys: Capsys) -> None:
    Path("long.core").write_text(
        '%0 = Input () {name="x"} : tensor<i64[1000]>\n'
        "%1 = Neg (%0) : tensor<i64[1000]>\noutputs: %1\n"
    )
    np.save("long.npy", np.arange(1000))
    outcome = invoke(capsys, "core", "eval", "long.core", "--input", "x=long.npy")
    assert (
        outcome.out == "output output0: %1 tensor<i64[1000]>\n[   0   -1   -2 ... -997 -998 -999]\n"
    )


def test_an_array_of_the_other_byte_order_is_taken(capsys: Capsys) -> None:
    np.save("x.npy", X.astype(">f4"))
    outcome = invoke(capsys, "core", "eval", "m.core", *INPUTS, "--output", "0=y.npy")
    assert outcome.status == 0
    np.testing.assert_array_equal(np.load("y.npy"), np.maximum(X @ W + B, 0))


def test_a_type_that_numpy_lacks_is_taken_from_its_bytes(capsys: Capsys) -> None:
    Path("b.core").write_text(
        '%0 = Input () {name="x"} : tensor<bf16[2]>\n%1 = Neg (%0) : tensor<bf16[2]>\noutputs: %1\n'
    )
    np.save("half.npy", np.array([0x3F80, 0xC000], np.uint16).view("V2"))  # 1 and -2
    outcome = invoke(capsys, "core", "eval", "b.core", "--input", "x=half.npy")
    assert (outcome.status, outcome.out) == (0, "output output0: %1 tensor<bf16[2]>\n[-1 2]\n")


def test_missing_and_unknown_inputs_are_findings(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "eval", "m.core", "--input", "x=x.npy", "--input", "v=w.npy")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.count("error[EVL01]") == 2
    assert "the module has no input `v`" in outcome.err


@pytest.mark.parametrize(
    "content",
    [b"", b"\x93NUMPY", b"hello", b"\x80\x04K\x01.", b"\x93NUMPY\x01\x00\x10\x00{'descr': 'O'}\n"],
)
def test_a_file_that_is_no_array_is_refused(capsys: Capsys, content: bytes) -> None:
    Path("x.npy").write_bytes(content)
    outcome = invoke(capsys, "core", "eval", "m.core", *INPUTS)
    assert (outcome.status, outcome.out) == (1, "")
    assert "`x.npy` is no .npy file of plain numbers" in outcome.err


def test_pickles_and_archives_are_not_opened(capsys: Capsys) -> None:
    np.save("x.npy", np.array([{}], object))
    assert invoke(capsys, "core", "eval", "m.core", *INPUTS).status == 1
    with zipfile.ZipFile("x.npy", "w") as archive:
        archive.writestr("a.npy", b"")
    outcome = invoke(capsys, "core", "eval", "m.core", *INPUTS)
    assert (outcome.status, outcome.out) == (1, "")
    assert "holds several arrays, expected one" in outcome.err


def test_a_missing_array_is_wrong_usage(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "eval", "m.core", "--input", "x=none.npy")
    assert (outcome.status, outcome.err) == (2, "nacre: none.npy does not exist\n")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("1=y.npy", "there is no output `1`: the module has 1; they are output0"),
        ("y.npy", "`y.npy` is neither FILE.npz nor NAME=FILE.npy"),
        ("-1=y.npy", "there is no output `-1`: the module has 1"),
        ("none/y.npz", "cannot write none/y.npz: none is no folder"),
    ],
)
def test_an_output_that_cannot_be_is_wrong_usage(capsys: Capsys, output: str, message: str) -> None:
    outcome = invoke(capsys, "core", "eval", "m.core", *INPUTS, "--output", output)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err


# stats


def test_the_figures_of_a_module_are_counted(capsys: Capsys) -> None:
    Path("s.core").write_text(
        '%0 = Input () {name="x"} : tensor<f32[2, 3]>\n'
        "%1 = ConstTensor () {data=[[1.0], [2.0], [3.0]], dtype=f32, shape=[3, 1]}"
        " : tensor<f32[3, 1]>\n"
        "%2 = MatMul (%0, %1) : tensor<f32[2, 1]>\n"
        "%3 = Sum (%2) {axes=[], keepdims=false} : tensor<f32[]>\n"
        "outputs: %3\n"
    )
    outcome = invoke(capsys, "core", "stats", "s.core", "--format", "json")
    assert json.loads(outcome.out) == {
        "operations": {"ConstTensor": 1, "Input": 1, "MatMul": 1, "Sum": 1},
        "operations_total": 4,
        "macs": {"MatMul": 2 * 3},
        "macs_total": 6,
        "parameters": 3,
        "parameter_bytes": 12,
        "activation_peak_bytes": 24 + 8,  # x and the product; the weights are not counted
        "inputs": {"x": "tensor<f32[2, 3]>"},
        "outputs": ["tensor<f32[]>"],
        "layers": [
            {
                "name": "%2",
                "opcode": "MatMul",
                "macs": 6,
                "parameters": 3,
                "type": "tensor<f32[2, 1]>",
            }
        ],
    }
    text = invoke(capsys, "core", "stats", "s.core").out.splitlines()
    assert text[0].split() == ["operation", "count", "MACs"]
    assert text[5].split() == ["all", "4", "6"]
    assert text[-2:] == ["parameters:      3 (12 bytes)", "activation peak: 32 bytes"]


def test_a_model_that_no_machine_could_hold_is_still_counted(capsys: Capsys) -> None:
    side = 2**30
    Path("big.core").write_text(
        f'%0 = Input () {{name="x"}} : tensor<f32[{side}, {side}]>\n'
        f"%1 = MatMul (%0, %0) : tensor<f32[{side}, {side}]>\noutputs: %1\n"
    )
    outcome = invoke(capsys, "core", "stats", "big.core", "--format", "json")
    figures = json.loads(outcome.out)
    assert (figures["macs_total"], figures["activation_peak_bytes"]) == (side**3, 8 * side**2)


def test_figures_of_a_wrong_module_are_not_given(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "stats", "wrong.core")
    assert (outcome.status, outcome.out) == (1, "")
    assert "error[MAT02]" in outcome.err


# The group


@pytest.mark.parametrize("verb", ["verify", "canon", "eval", "lower", "stats"])
def test_every_verb_has_help(capsys: Capsys, verb: str) -> None:
    outcome = invoke(capsys, "core", verb, "-h")
    assert outcome.status == 0
    assert outcome.out.startswith(f"Usage: nacre core {verb}")


def test_rules_of_core_ir_can_be_explained(capsys: Capsys) -> None:
    outcome = invoke(capsys, "rule", "mat02")
    assert outcome.status == 0
    assert outcome.out.startswith("MAT02 ")


# JSON, and standard output by its name


def document(out: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out, parse_constant=pytest.fail)
    return found


RESULTS = (
    ("canon", "m.core"),
    ("grad", "m.core", "--wrt", "x"),
    ("lower", "relu(x)", "--input", "x=f32[2]"),
    ("convert", "m.core", "--to", "core"),
    ("convert", "m.core", "--to", "mlir"),
)


@pytest.mark.parametrize("arguments", RESULTS, ids=" ".join)
def test_a_module_as_json(arguments: tuple[str, ...], capsys: Capsys) -> None:
    text = invoke(capsys, "core", *arguments)
    outcome = invoke(capsys, "core", *arguments, "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    found = document(outcome.out)
    assert found["module"] == text.out
    assert next(iter(found["inputs"].values())).startswith("tensor<f32[2")
    assert found["operations"] > 1
    assert found["outputs"][0].startswith("tensor<f32[2")


@pytest.mark.parametrize("arguments", RESULTS[:4], ids=" ".join)
def test_a_module_that_is_written_as_json(
    arguments: tuple[str, ...], folder: Path, capsys: Capsys
) -> None:
    expected = invoke(capsys, "core", *arguments).out
    outcome = invoke(capsys, "core", *arguments, "-o", "out.core", "--format", "json")
    assert outcome.status == 0
    found = document(outcome.out)
    assert (found["path"], "module" in found) == ("out.core", False)
    assert (folder / "out.core").read_text() == expected


@pytest.mark.parametrize("arguments", RESULTS, ids=" ".join)
def test_a_line_for_a_name_is_standard_output(
    arguments: tuple[str, ...], folder: Path, capsys: Capsys
) -> None:
    expected = invoke(capsys, "core", *arguments)
    outcome = invoke(capsys, "core", *arguments, "-o", "-")
    assert (outcome.status, outcome.out) == (0, expected.out)
    assert not (folder / "-").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("canon", "wrong.core"), "MAT02"),
        (("eval", "wrong.core"), "MAT02"),
        (("eval", "m.core"), "EVL01"),
        (("grad", "m.core", "--wrt", "q"), "GRD02"),
        (("lower", "relu(x"), "LOW01"),
        (("convert", "wrong.core", "--to", "mlir"), "MAT02"),
        (("convert", "wrong.core", "-o", "x.mlir"), "MAT02"),
        (("stats", "wrong.core"), "MAT02"),
        (("verify", "wrong.core"), "MAT02"),
    ],
)
def test_a_mistake_as_json(
    arguments: tuple[str, ...], code: str, folder: Path, capsys: Capsys
) -> None:
    outcome = invoke(capsys, "core", *arguments, "--format", "json")
    assert (outcome.status, outcome.err) == (1, "")
    first = document(outcome.out)["diagnostics"][0]
    assert first["code"] == code
    assert {"line", "column", "file", "message", "severity"} <= first.keys()
    assert not (folder / "x.mlir").exists()


def test_outputs_as_json(folder: Path, capsys: Capsys) -> None:
    outcome = invoke(
        capsys, "core", "eval", "m.core", *INPUTS, "--output", "o.npz", "--format", "json"
    )
    assert outcome.status == 0
    found = document(outcome.out)
    expected = np.maximum(X @ W + B, 0)
    assert found == {
        "outputs": [
            {
                "name": "output0",
                "id": 5,
                "dtype": "f32",
                "shape": [2, 4],
                "values": expected.tolist(),
            }
        ],
        "peak_bytes": found["peak_bytes"],
        "written": ["o.npz"],
    }
    assert found["peak_bytes"] > 0
    assert (folder / "o.npz").exists()


def test_what_json_has_no_number_for_is_a_word(folder: Path, capsys: Capsys) -> None:
    text = """\
%0 = ConstTensor () {data=[nan, inf, -inf, 0.5], dtype=f16, shape=[4]} : tensor<f16[4]>
%1 = ConstTensor () {data=[true, false], dtype=bool, shape=[2]} : tensor<bool[2]>
%2 = ConstTensor () {data=-8, dtype=i4, shape=[]} : tensor<i4[]>
outputs: %0, %1, %2
"""
    (folder / "odd.core").write_text(text)
    found = document(invoke(capsys, "core", "eval", "odd.core", "--format", "json").out)
    values = [output["values"] for output in found["outputs"]]
    assert values == [["nan", "inf", "-inf", 0.5], [True, False], -8]


def test_large_outputs_have_a_summary(folder: Path, capsys: Capsys) -> None:
    (folder / "big.core").write_text(
        """%0 = Input () {name="x"} : tensor<f32[2000]>
%1 = Input () {name="n"} : tensor<f32[2000]>
%2 = Iota () {axis=0, dtype=i64, shape=[2000]} : tensor<i64[2000]>
outputs: %0, %1, %2
"""
    )
    x = np.full(2000, 2, np.float32)
    x[:2] = np.nan, 5
    np.save(folder / "x.npy", x)
    np.save(folder / "n.npy", np.full(2000, np.nan, np.float32))
    given = ("--input", "x=x.npy", "--input", "n=n.npy")
    outcome = invoke(capsys, "core", "eval", "big.core", *given, "--format", "json")
    first, second, third = (o["summary"] for o in document(outcome.out)["outputs"])
    assert (first["min"], first["max"], first["nan"]) == (2, 5, 1)
    assert first["mean"] == pytest.approx((5 + 2 * 1998) / 1999)
    assert second == {"min": None, "max": None, "mean": None, "nan": 2000}
    assert third == {"min": 0, "max": 1999, "mean": 999.5, "nan": 0}


def test_standard_input_that_is_no_text_has_the_code_of_a_file() -> None:
    outcome = nacre_here("core", "canon", "-", stdin=b"%0 = \xff")
    assert outcome.status == 1
    assert "error[STO01]" in outcome.err
    assert "is not UTF-8" in outcome.err


@pytest.mark.heavy("processes of their own")
def test_standard_input_has_no_constants_beside_it(folder: Path) -> None:
    build = core.Builder()
    core.save(build.module(build.constant(np.arange(100.0))), folder / "big.core")
    text = (folder / "big.core").read_bytes()
    outcome = nacre("core", "canon", "-", stdin=text, cwd=folder)
    assert outcome.status == 1
    assert "error[STO02]" in outcome.err
    assert "the text has no folder beside it" in outcome.err
    assert nacre("core", "canon", "big.core", cwd=folder).status == 0
