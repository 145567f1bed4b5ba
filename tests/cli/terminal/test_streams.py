"""Whatever files say, output holds no control character, no forged line and no script."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.cli.terminal.streams import HarmlessStream, make_harmless
from tests.cli.runner import environment, invoke, nacre
from tests.effort import every

onnx = pytest.importorskip("onnx")

pytestmark = pytest.mark.sampled(2)  # together they take long
helper: Any = onnx.helper

Capsys = pytest.CaptureFixture[str]
# Colours, a title, a bell, a C1 introducer, an override of direction, a carriage return, a line.
EVIL = "a\x1b[31mr\x1b]0;t\x07\x9b5mc\u202eb\rX\nFORGED <script>alert(1)</script>"
IN, OUT = f"in{EVIL}", f"out{EVIL}"
DEVICE = ("--device", "npm_lite")


def require_harmless(text: str) -> None:
    """No character that a terminal obeys, and no line that is not ours."""
    odd = {c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl")}
    assert not odd, text
    assert not [line for line in text.split("\n") if line.startswith("FORGED")], text
    assert "internal error" not in text, text


def run(capsys: Capsys, *arguments: str | Path) -> str:
    """What a verb says, which is looked at."""
    done = invoke(capsys, *arguments)
    require_harmless(done.text)
    return done.text


def model(path: Path, *nodes: Any, domain: str | None = None) -> Path:  # noqa: ANN401 - of onnx
    kind = onnx.TensorProto.FLOAT
    weights = np.array([[1, 0.31], [0.17, 1]], np.float32)
    graph = helper.make_graph(
        list(nodes),
        f"graph{EVIL}",
        [helper.make_tensor_value_info(IN, kind, [1, 2])],
        [helper.make_tensor_value_info(OUT, kind, [1, 2])],
        [onnx.numpy_helper.from_array(weights, f"w{EVIL}")],
    )
    sets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    onnx.save(helper.make_model(graph, opset_imports=sets), path)
    return path


@pytest.fixture
def good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that can be compiled, in the current folder, with inputs and data beside it."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones((1, 2), np.float32))
    samples = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 1, 2)
    np.savez("data.npz", **{IN: samples})  # type: ignore[arg-type]
    np.savez("other.npz", **{f"key{EVIL}": samples})  # type: ignore[arg-type]
    node = helper.make_node("MatMul", [IN, f"w{EVIL}"], [OUT], name=f"node{EVIL}")
    return model(Path("good.onnx"), node)


@pytest.mark.parametrize("suffix", [".onnx", ".core"])
def test_verbs_of_core_say_names_of_models_harmlessly(
    good: Path, suffix: str, capsys: Capsys
) -> None:
    run(capsys, "core", "convert", good, "-o", "good.core")
    file = good.with_suffix(suffix)
    for verb in ("verify", "canon", "eval", "stats", "grad"):
        run(capsys, "core", verb, file)
    run(capsys, "core", "eval", file, "--input", f"{IN}=x.npy", "--output", f"{OUT}=y.npy")
    run(capsys, "core", "eval", file, "--input", f"{EVIL}=x.npy")
    run(capsys, "core", "grad", file, "--wrt", IN)
    assert "node" in run(capsys, "core", "stats", good, "--layers")
    for to in ("core", "mlir"):
        run(capsys, "core", "convert", file, "--to", to)
    run(capsys, "core", "convert", good, "--report")


def test_verbs_of_nac_say_names_of_models_harmlessly(good: Path, capsys: Capsys) -> None:
    run(capsys, "nac", "build", good, "-o", "m.nac")
    assert "w" in run(capsys, "nac", "build", good, "-o", "q.nac", "--quant", "int8_channel",
                      "--report")  # fmt: skip
    for verb in ("info", "dis", "run", "verify", "genome"):
        run(capsys, "nac", verb, "q.nac")
    run(capsys, "nac", "run", "m.nac", "--input", f"{IN}=x.npy")
    run(capsys, "nac", "diff", "m.nac", "q.nac")
    run(capsys, "nac", "extract", "m.nac", "-o", "parts")
    run(capsys, "nac", "convert", "m.nac", "--to", "core")


@pytest.mark.full  # with PyTorch
def test_programs_of_pytorch_say_names_harmlessly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    layer = torch.nn.Linear(2, 2)
    program = torch.export.export(torch.nn.Sequential(layer), (torch.ones(1, 2),))
    torch.export.save(program, "plain.pt2")
    with zipfile.ZipFile("plain.pt2") as old, zipfile.ZipFile("good.pt2", "w") as new:
        for info in old.infolist():
            raw = old.read(info)
            new.writestr(info.filename, raw.replace(b'"0.weight"', json.dumps(EVIL).encode()))
    for verb in (("verify",), ("stats", "--layers"), ("convert", "--report"), ("eval",)):
        run(capsys, "core", verb[0], "good.pt2", *verb[1:])
    assert "TCH05" in run(capsys, "nac", "build", "good.pt2", "-o", "m.nac")
    assert "TCH05" in run(capsys, "compile", "good.pt2", *DEVICE, "-o", "plan")


@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_plans_and_their_pages_say_names_of_models_harmlessly(
    good: Path, precision: str, capsys: Capsys
) -> None:
    data = ("--calibrate", "data.npz") if precision == "i8" else ()
    how = (*DEVICE, "--precision", precision, *data)
    run(capsys, "compile", good, *how, "-o", "plan", "--print-after", "legalise")
    run(capsys, "estimate", good, *how, "--report", "estimate.html")
    run(capsys, "validate", "plan")
    run(capsys, "validate", "plan", "--input", f"{IN}=x.npy", "--expect", f"{EVIL}=x.npy")
    run(capsys, "run", "plan", "--input", f"{IN}=x.npy", "--output", f"{OUT}=y.npy")
    run(capsys, "run", "plan", "--output", f"{EVIL}=y.npy")
    run(capsys, "run", "plan", "--mode", "timed", "--no-values", "--report", "run.html")
    run(capsys, "check", "plan")
    looks = ("tasks", "step", "buffers", "tokens", "trace", "list", "where", "layers", "run")
    commands = [word for look in looks for word in ("--command", look)]
    run(capsys, "debug", "plan", "--batch", "--input", f"{IN}=x.npy", *commands)
    for page in ("estimate.html", "run.html"):
        assert "<script>alert" not in Path(page).read_text(encoding="utf-8")


def test_refusals_say_what_files_and_options_hold_harmlessly(good: Path, capsys: Capsys) -> None:
    odd = helper.make_node(f"Op{EVIL}", [IN], [OUT], name=f"n{EVIL}", domain=f"d{EVIL}")
    bad = model(Path("bad.onnx"), odd, domain=f"d{EVIL}")
    assert "Op" in run(capsys, "core", "convert", bad, "--report")
    run(capsys, "core", "verify", bad)
    run(capsys, "compile", bad, *DEVICE, "-o", "plan")
    run(capsys, "estimate", bad, *DEVICE)
    run(capsys, "nac", "build", bad, "-o", "m.nac")
    for more in (
        ("--precision", "i8", "--calibrate", "other.npz"),
        ("--precision", "i8", "--calibrate", "data.npz", "--precision-map", f"{EVIL}=f16"),
        ("--shape", f"{EVIL}=1x2"),
        ("--constant", f"{EVIL}=1"),
    ):
        run(capsys, "compile", good, *DEVICE, *more, "-o", "plan")
    run(capsys, "compile", good, "--device", EVIL, "-o", "plan")


_VERBS: tuple[tuple[str, ...], ...] = (
    ("check",), ("fmt",), ("run",), ("debug",), ("rule",), ("devices",), ("backend-check",),
    ("validate",), ("compile", *DEVICE, "-o", "plan"), ("estimate", *DEVICE),
    *(("core", verb) for verb in ("verify", "canon", "eval", "stats", "convert")),
    *(("nac", verb) for verb in ("info", "dis", "run", "verify", "extract")), (),
)  # fmt: skip


@pytest.mark.parametrize("verb", _VERBS, ids=" ".join)
def test_names_of_files_are_said_harmlessly(
    verb: tuple[str, ...], tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for suffix in (".nem", ".onnx", ".core", ".nac"):
        name = EVIL.replace("/", "_") + suffix
        run(capsys, *verb, name)
        Path(name).write_text(EVIL)
        run(capsys, *verb, name)


@pytest.mark.parametrize(
    "program",
    [
        f'include "{EVIL}"\n',
        f"buffer {EVIL} : DDR (size=64)\n",
        f'@debug("{EVIL}")\nbuffer A : DDR (size=64, align=64)\n',
        f'program:\ncompute op="{EVIL}" inputs=[] outputs=[]\n',
        f'const N = "{EVIL}"\n',
        f"# {EVIL}\n",
    ],
)
def test_programs_are_quoted_harmlessly(program: str, tmp_path: Path, capsys: Capsys) -> None:
    file = tmp_path / "p.nem"
    file.write_text(program)
    for verb in ("check", "run", "devices"):
        run(capsys, verb, file)
    run(capsys, "debug", file, "--batch")
    run(capsys, "fmt", file, "--check")


@pytest.mark.fuzz
@given(st.text(max_size=30))
def test_nothing_that_a_terminal_obeys_gets_through(text: str) -> None:
    behind = io.StringIO(newline="")
    stream = HarmlessStream(behind)
    assert stream.write(text) == len(text)
    shown = behind.getvalue()
    assert shown.count("\n") == text.count("\n")
    assert shown.replace("\n", "").replace("\t", "").isprintable()
    assert make_harmless(shown) == shown


def test_a_formatted_program_is_passed_on_to_the_letter() -> None:
    program = b"# a comment with \x1b[31m in it\n"
    done = nacre("fmt", "-", stdin=program)
    assert (done.status, done.out.encode()) == (0, program)


def _cut_short(arguments: list[str], cwd: Path) -> int:
    """The status of a verb whose reader is gone before it says a word."""
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        [sys.executable, "-m", "nacre", *arguments],
        cwd=cwd, env=environment(), stdin=subprocess.DEVNULL, stdout=writer, stderr=writer,
    )  # fmt: skip
    os.close(writer)
    return process.wait(120)


@pytest.mark.heavy("several processes")
def test_a_closed_pipe_changes_no_status(good: Path, tmp_path: Path) -> None:
    wrong = "buffer A : DDR (size=0, align=64)\n" * 2
    (tmp_path / "wrong.nem").write_text(wrong)
    cases = {
        ("check", "wrong.nem"): 1,
        ("check", "wrong.nem", "--format", "json"): 1,
        ("core", "eval", str(good)): 1,
        ("devices",): 0,
        ("nosuchverb",): 2,
    }
    tried = every(2, list(cases))
    assert {c: _cut_short(list(c), tmp_path) for c in tried} == {c: cases[c] for c in tried}
