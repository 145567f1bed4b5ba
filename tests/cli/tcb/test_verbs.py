"""`nacre bind` and `nacre tcb`: the road of one program, and what is wrong with others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.nem.api import NemInterpreter
from tests.bind.test_fusion import PROGRAM
from tests.cli.runner import invoke

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CONV = EXAMPLES / "conv2d_relu.nem"
MOVE = """include "npm4k.nem"
device npm4k
program move:
buffer X : DDR (size=64)
buffer Y : DDR (size=64)
t = transfer.async(dst=region(Y, 0, 64), src=region(X, 0, 64))
"""


@pytest.fixture
def image(capsys: Capsys, tmp_path: Path) -> Path:
    path = tmp_path / "conv.tcb"
    assert invoke(capsys, "bind", CONV, "-o", path).status == 0
    return path


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """One whose product, activation and store are a chain."""
    path = tmp_path / "p.nem"
    path.write_text(PROGRAM)
    return path


# Binding


def test_a_summary_says_what_came_out(capsys: Capsys, program: Path, tmp_path: Path) -> None:
    done = invoke(capsys, "bind", program, "-o", tmp_path / "p.tcb")
    assert (done.status, done.err) == (0, "")
    size = (tmp_path / "p.tcb").stat().st_size
    assert done.out.splitlines() == [
        "bound p to npm4k with uarch npm4k: 7 blocks in 1 stream, 1 repeat",
        "tags: 2 of 128 of engine 0",
        "chains: 1 chain that runs 4 times, 4,096 bytes not written, units held for 92 cycles, "
        "not 104",
        "relocations: 2: D (inout), O (inout)",
        f"wrote {tmp_path / 'p.tcb'}: {size:,} bytes",
    ]


def test_every_decision_is_told_with_its_reason(
    capsys: Capsys, program: Path, tmp_path: Path
) -> None:
    report = tmp_path / "p.txt"
    out = ("-o", tmp_path / "p.tcb")
    assert invoke(capsys, "bind", program, *out, "--report", report).status == 0
    text = report.read_text()
    printed = invoke(capsys, "bind", program, *out, "--report", "-").out
    assert printed.startswith(text)
    for part in ("any that can run it", "0x10000", "c -> r -> s", "Bytes not written"):
        assert part in text
    cut = invoke(capsys, "bind", CONV, *out, "--report", "-").out
    assert "2 pairs: `@materialized` forbids it\n    tC -> tR at line 83: on `Y_pp_i`" in cut


def test_json_has_all_of_it(capsys: Capsys, program: Path, tmp_path: Path) -> None:
    done = invoke(capsys, "bind", program, "-o", tmp_path / "p.tcb", "--format", "json")
    found = json.loads(done.out)
    assert (found["status"], found["device"], found["uarch"]) == ("bound", "npm4k", "npm4k")
    assert found["blocks"] == {"task": 5, "wait": 0, "join": 2}
    assert [unit["match"] for unit in found["units"]] == ["free"] * 5
    (chain,) = found["chains"]
    assert (chain["tasks"], chain["bytes_not_written"]) == (["c", "r", "s"], 4096)
    assert {address["buffer"] for address in found["addresses"]} == set("DOLA")
    assert [port["name"] for port in found["relocations"]] == ["D", "O"]
    assert found["diagnostics"] == []


def test_a_page_and_json_say_the_same(capsys: Capsys, program: Path, tmp_path: Path) -> None:
    page, out = tmp_path / "p.html", ("-o", tmp_path / "p.tcb")
    done = invoke(capsys, "bind", program, *out, "--report", page)
    assert done.status == 0
    assert done.out.endswith(f"wrote {page}: timelines, cycles by cause, every decision\n")
    found = json.loads(
        invoke(capsys, "bind", program, *out, "--report", page, "--format", "json").out
    )
    text = page.read_text()
    embedded = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert found["proof"]["is_proved"] is embedded["proof"]["is_proved"] is True
    assert (found["cycles"], found["causes"]) == (embedded["run_cycles"], embedded["causes"])
    assert [memory["memory"] for memory in found["memories"]] == ["L2", "L1[0]"]
    assert found["chains"] == embedded["chains"]
    before = found["cycles"]["program"] + sum(cause["added"] for cause in found["causes"])
    assert before == found["cycles"]["image"]


def test_a_page_that_cannot_be_written_leaves_no_image(
    capsys: Capsys, program: Path, tmp_path: Path
) -> None:
    page, out = tmp_path / "p.html", tmp_path / "p.tcb"
    page.mkdir()
    assert invoke(capsys, "bind", program, "-o", out, "--report", page).status == 2
    assert not out.exists()


def test_nothing_is_fused_where_nobody_wants_it(
    capsys: Capsys, program: Path, tmp_path: Path
) -> None:
    done = invoke(capsys, "bind", program, "-o", tmp_path / "p.tcb", "--no-fuse")
    assert "\nchains: none\n" in done.out


def test_weights_are_compressed_unless_nobody_wants_it(capsys: Capsys, tmp_path: Path) -> None:
    build = Builder()
    x = build.input("x", "f32", (4, 16))
    out = build.add("Linear", x, build.constant(np.eye(16, dtype=np.float32)))
    bundle, image = tmp_path / "bundle", tmp_path / "b.tcb"
    nacre.compile(build.module(out), "npm16k").save(bundle)
    done = invoke(capsys, "bind", bundle, "-o", image, "--report", "-")
    assert "\nWeights through the WDM\n" in done.out
    assert "\nweights: 1 transfer compressed, 512 bytes in 36, " in done.out
    assert invoke(capsys, "tcb", "verify", image, bundle).status == 0
    found = json.loads(invoke(capsys, "bind", bundle, "-o", image, "--format", "json").out)
    weights = found["weights"]["compressed"][0]
    assert (weights["mode"], weights["bytes"], weights["compressed_bytes"]) == ("palette", 512, 36)
    plain = invoke(capsys, "bind", bundle, "-o", image, "--no-wdm")
    assert "\nweights: plain: compressing was turned off\n" in plain.out


def test_too_few_tags_are_an_error_or_more_order(capsys: Capsys, tmp_path: Path) -> None:
    few = tmp_path / "few.uarch"
    few.write_text("uarch few { tags { engine = 3 device = 3 } }")
    out = tmp_path / "c.tcb"
    refused = invoke(capsys, "bind", CONV, "--uarch", few, "-o", out)
    assert refused.status == 1
    assert "error[BND01]" in refused.out
    assert "--allow-serialise" in refused.out
    assert not out.exists()
    done = invoke(capsys, "bind", CONV, "--uarch", few, "--allow-serialise", "-o", out)
    assert done.status == 0
    assert "serialised: in loop `i` 1 of 2 iterations in flight, for want of tags" in done.out
    assert invoke(capsys, "tcb", "verify", out, CONV).status == 0


def test_a_program_with_errors_is_not_bound(capsys: Capsys, tmp_path: Path) -> None:
    broken, out = tmp_path / "b.nem", tmp_path / "b.tcb"
    broken.write_text("program p:\nwait(t)\n")
    done = invoke(capsys, "bind", broken, "-o", out)
    assert (done.status, out.exists()) == (1, False)
    assert done.out.splitlines()[-1] == f"did not bind {broken}: 1 error"
    as_json = json.loads(invoke(capsys, "bind", broken, "-o", out, "--format", "json").out)
    assert (as_json["status"], len(as_json["diagnostics"])) == ("error", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bind", "nowhere.nem", "-o", "x.tcb"), "nowhere.nem does not exist"),
        (("bind", CONV, "-o", "no/x.tcb"), "no is no folder"),
        (("bind", CONV), "Missing option '-o'"),
        (("bind", CONV, "-o", "x.tcb", "--report", "no/x.html"), "no is no folder"),
        (("bind", CONV, "-o", "x.tcb", "--report", "x.tcb"), "would be written twice"),
        (("bind", CONV, "-o", "x.tcb", "--device", "npm5k"), "no device `npm5k`"),
        (("tcb", "dis", "nowhere.tcb"), "nowhere.tcb does not exist"),
        (("tcb", "frobnicate"), "No such command"),
        (("tcb", "verify", "-", "-"), "one of the two may be standard input"),
    ],
)
def test_wrong_usage(
    capsys: Capsys,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str | Path, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke(capsys, *arguments)
    assert done.status == 2
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


# Text


def test_text_and_bytes_are_inverses(capsys: Capsys, image: Path, tmp_path: Path) -> None:
    text, again = tmp_path / "c.txt", tmp_path / "again.tcb"
    assert invoke(capsys, "tcb", "dis", image, "-o", text).status == 0
    assert text.read_text() == invoke(capsys, "tcb", "dis", image).out
    assert "# tC at line 72" in text.read_text()
    assert invoke(capsys, "tcb", "asm", text, "-o", again).status == 0
    assert again.read_bytes() == image.read_bytes()


def test_mistakes_of_a_text_have_a_place(capsys: Capsys, image: Path, tmp_path: Path) -> None:
    text = tmp_path / "c.txt"
    text.write_text(nacre.TcbImage.load(image).text.replace("repeat @1", "repeet @1"))
    done = invoke(capsys, "tcb", "asm", text, "-o", tmp_path / "x.tcb")
    assert done.status == 1
    assert "error[TCB03]" in done.err
    assert "did you mean `repeat`?" in done.err
    assert not (tmp_path / "x.tcb").exists()


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"", "TCB05"), (b"hello", "TCB05"), (b"\xff\xfe\0", "TCB08"), (b"tcb 1\n" * 3, "TCB02")],
)
def test_what_is_no_image_has_one_mistake(
    capsys: Capsys, tmp_path: Path, data: bytes, code: str
) -> None:
    path = tmp_path / "x.tcb"
    path.write_bytes(data)
    for verb in ("dis", "run"):
        done = invoke(capsys, "tcb", verb, path)
        assert done.status == 1
        assert done.text.count("error[") == done.text.count(f"error[{code}]") == 1


@pytest.mark.parametrize("verb", [("dis",), ("run",), ("verify", CONV)])
def test_a_damaged_file_is_refused(
    capsys: Capsys, image: Path, verb: tuple[str | Path, ...]
) -> None:
    data = image.read_bytes()
    for cut in range(8, len(data), len(data) // 7):
        image.write_bytes(data[:cut])
        done = invoke(capsys, "tcb", verb[0], image, *verb[1:])
        assert done.status == 1
        assert "error[TCB1" in done.text


# Proof


def test_an_image_is_proved_against_its_own_program(capsys: Capsys, image: Path) -> None:
    done = invoke(capsys, "tcb", "verify", image, CONV)
    assert (done.status, done.out) == (0, f"proved: {image} means what {CONV} means\n")
    other = invoke(capsys, "tcb", "verify", image, EXAMPLES / "gemm_bias_relu.nem")
    assert other.status == 1
    assert "error[TCB83]" in other.out
    assert "not proved: " in other.out


def test_a_wait_that_is_missing_is_a_finding(capsys: Capsys, image: Path, tmp_path: Path) -> None:
    text = tmp_path / "c.txt"
    whole = nacre.TcbImage.load(image).text
    text.write_text(whole.replace("wait e0.t(c0 mod 2 + 2)>=(c0/2)*4 + 2 signal", "signal"))
    done = invoke(capsys, "tcb", "verify", text, CONV, "--format", "json")
    assert done.status == 1
    assert {finding["code"] for finding in json.loads(done.out)["diagnostics"]} == {"TCB84"}


# Runs


def random_inputs(folder: Path) -> list[str]:
    rng = np.random.default_rng(0)
    np.save(folder / "x.npy", rng.integers(0, 60, 65536).astype(np.int8))
    np.save(folder / "w.npy", rng.integers(-3, 4, 73728).astype(np.int8))
    (folder / "b.bin").write_bytes(bytes(512))
    files = {"X_L2": "x.npy", "W_L2": "w.npy", "B_L2": "b.bin"}
    return [part for name, file in files.items() for part in ("--input", f"{name}={folder / file}")]


@pytest.mark.parametrize("seed", [(), ("--seed", "7")])
def test_a_run_leaves_the_bytes_of_nem(
    capsys: Capsys, image: Path, tmp_path: Path, seed: tuple[str, ...]
) -> None:
    inputs = random_inputs(tmp_path)
    outputs = [f"Y_L2:i8:4x14x14x128={tmp_path / name}" for name in ("y.npy", "nem.npy")]
    done = invoke(capsys, "tcb", "run", image, *inputs, *seed, "--output", outputs[0])
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "ran 22 blocks of conv2d_relu on npm_lite: completed",
        f"wrote {tmp_path / 'y.npy'}: Y_L2 as i8 [4, 14, 14, 128]",
    ]
    assert invoke(capsys, "run", CONV, *inputs, "--output", outputs[1]).status == 0
    assert (tmp_path / "y.npy").read_bytes() == (tmp_path / "nem.npy").read_bytes()


def test_a_run_as_json(capsys: Capsys, image: Path, tmp_path: Path) -> None:
    inputs = random_inputs(tmp_path)
    output = f"Y_L2={tmp_path / 'y.bin'}"
    done = invoke(capsys, "tcb", "run", image, *inputs, "--output", output, "--format", "json")
    found = json.loads(done.out)
    assert (found["status"], found["instances"], found["diagnostics"]) == ("completed", 22, [])
    assert found["outputs"] == {str(tmp_path / "y.bin"): {"port": "Y_L2", "type": "100352 bytes"}}
    assert (tmp_path / "y.bin").stat().st_size == 100352


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--input", "Q=x.npy"), 2, "no port or buffer `Q`"),
        (("--input", "X=gone.npy"), 2, "gone.npy does not exist"),
        (("--input", "X=x.npy", "--input", "X=x.npy"), 2, "is given two inputs"),
        (("--input", "X=x.npy", "--output", "Y:f16:3x3=y.npy"), 2, "3x3 of f16 takes 18"),
        (("--input", "X=x.npy", "--output", "Y=x.npy"), 2, "is read, and would be written over"),
        (("--input", "X=short.npy"), 1, "error[TCB58]"),
    ],
)
def test_inputs_and_outputs_that_do_not_fit(
    capsys: Capsys,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    status: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    nacre.bind(MOVE).save("m.tcb")
    np.save("x.npy", np.arange(64, dtype=np.int8))
    np.save("short.npy", np.zeros(8, np.int8))
    done = invoke(capsys, "tcb", "run", "m.tcb", *arguments)
    assert done.status == status
    assert message in done.text
    assert not Path("y.npy").exists()


# Bundles


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = Builder()
    x = build.input("x", "f32", (4, 16))
    weights = np.random.default_rng(1).normal(size=(16, 16)).astype(np.float32)
    out = build.add("Linear", x, build.constant(weights), build.constant(weights[0]))
    folder = tmp_path_factory.mktemp("bundles") / "b"
    nacre.compile(build.module(build.add("ReluNan", out)), "npm4k").save(folder)
    return folder


def test_a_bundle_is_bound_with_its_weights(capsys: Capsys, bundle: Path, tmp_path: Path) -> None:
    image = tmp_path / "b.tcb"
    done = invoke(capsys, "bind", bundle, "-o", image)
    assert (done.status, done.err) == (0, "")
    assert "relocations: 2: x (input)" in done.out
    assert invoke(capsys, "tcb", "verify", image, bundle).status == 0
    x = np.random.default_rng(2).normal(size=(4, 16)).astype(np.float32)
    ((name, expected),) = nacre.Bundle.load(bundle).run({"x": x}).items()
    files = ("--input", f"x={tmp_path / 'x.npy'}", "--output", f"{name}={tmp_path / 'y.npy'}")
    for given in (x, x.astype(np.float16)):
        np.save(tmp_path / "x.npy", given)
        assert invoke(capsys, "tcb", "run", image, *files).status == 0
        found = np.load(tmp_path / "y.npy")
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, expected)
    np.save(tmp_path / "x.npy", x.astype(np.float64))
    refused = invoke(capsys, "tcb", "run", image, *files)
    assert refused.status == 1
    assert "`x` takes f32 or f16 [4, 16], but was given float64 [4, 16]" in refused.out
    assert invoke(capsys, "bind", bundle, "--device", "npm8k", "-o", image).status == 2


def test_nothing_that_is_read_is_written_over(capsys: Capsys, bundle: Path, tmp_path: Path) -> None:
    device = tmp_path / "own.nem"
    device.write_text('include "npm4k.nem"\ndevice own extends npm4k {}\n')
    program = tmp_path / "p.nem"
    text = (EXAMPLES / "gemm_bias_relu.nem").read_text()
    program.write_text(f'include "own.nem"\n{text}')
    for read, plan in ((device, program), (bundle / "model.nem", bundle)):
        before = read.read_bytes()
        done = invoke(capsys, "bind", plan, "-o", read)
        assert (done.status, read.read_bytes()) == (2, before)
        assert "is read, and would be written over" in done.text
        report = invoke(capsys, "bind", plan, "-o", tmp_path / "x.tcb", "--report", read)
        assert (report.status, read.read_bytes()) == (2, before)


@pytest.mark.parametrize("option", [("--ddr-size", "4096"), ("--import", "x_DDR")])
def test_options_of_programs_are_refused_for_bundles(
    capsys: Capsys, bundle: Path, tmp_path: Path, option: tuple[str, str]
) -> None:
    done = invoke(capsys, "bind", bundle, *option, "-o", tmp_path / "b.tcb")
    assert done.status == 2
    assert "are for programs" in done.text
    with pytest.raises(ValueError, match="a bundle is for one device"):
        nacre.bind(bundle, device="npm4k")


def test_python_says_what_it_takes(tmp_path: Path) -> None:
    text = (EXAMPLES / "gemm_bias_relu.nem").read_text()
    for wrong in (None, 5, nacre.bind(text)):
        with pytest.raises(TypeError, match="a program is a text, a path"):
            nacre.bind(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="fuse is True or False, not 'no'"):
        nacre.bind(text, fuse="no")  # type: ignore[arg-type]
    image = nacre.bind(text)
    for seed in ("x", 1.5, True):
        with pytest.raises(TypeError, match="a seed is an integer"):
            image.run({}, seed=seed)  # type: ignore[arg-type]
    (placed, *_) = image.image.placements
    for array in (np.array([None] * (placed.size // 8)), np.zeros(placed.size // 2, ">f2")):
        with pytest.raises(InputError) as refused:
            image.run({placed.buffer: array})
        assert [finding.code for finding in refused.value.diagnostics] == ["TCB58"]
    with pytest.raises(InputError):
        nacre.bind("")


def test_blocks_of_a_bundle_are_of_its_layers(bundle: Path) -> None:
    image = nacre.bind(bundle).image
    layers = nacre.Bundle.load(bundle).manifest.layers
    owners = {task: layer.name for layer in layers for task in (*layer.tasks, *layer.loads)}
    found = {origin.name: origin.layer for origin in image.origins if origin.name in owners}
    assert found == owners


def test_python_has_the_same_road(bundle: Path, tmp_path: Path) -> None:
    image = nacre.bind(bundle)
    image.save(tmp_path / "b.tcb")
    again = nacre.TcbImage.load(tmp_path / "b.tcb")
    assert again.text == image.text
    assert again.verify(bundle) == []
    x = np.random.default_rng(2).normal(size=(4, 16)).astype(np.float32)
    expected = nacre.Bundle.load(bundle).run({"x": x})
    for given in (x, x.astype(np.float16)):
        outputs = again.run({"x": given}, seed=3).outputs
        assert list(outputs) == list(expected)
        for name, array in outputs.items():
            assert array.dtype == np.float32
            np.testing.assert_array_equal(array, expected[name])


def test_a_program_from_standard_input_is_the_same(capsys: Capsys, image: Path) -> None:
    program = NemInterpreter().load(CONV)
    assert nacre.bind(program).image == nacre.TcbImage.load(image).image


# Looked at


def test_an_image_in_numbers(capsys: Capsys, image: Path) -> None:
    done = invoke(capsys, "tcb", "info", image)
    assert done.status == 0
    assert "7 blocks (5 task, 2 join), 1 repeat up to 1 deep, 0 chained to the next" in done.out
    assert "\ne0           7        1     4  64\n" in done.out
    found = json.loads(invoke(capsys, "tcb", "info", image, "--format", "json").out)
    assert found["kinds"] == {"task": 5, "join": 2}
    assert found["file_bytes"] == image.stat().st_size


def test_two_images_are_compared(capsys: Capsys, program: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.tcb", tmp_path / "other.tcb"
    nacre.bind(program).save(one)
    nacre.bind(program, fuse=False).save(other)
    assert invoke(capsys, "tcb", "diff", one, one).out == "the images are equal\n"
    done = invoke(capsys, "tcb", "diff", one, other)
    assert (done.status, done.err) == (1, "")
    assert "    chained: true -> false\n" in done.out
    as_json = json.loads(invoke(capsys, "tcb", "diff", one, other, "--format", "json").out)
    assert {difference["change"] for difference in as_json} == {"changed"}
    assert invoke(capsys, "tcb", "diff", one, program).status == 1


# Time


def test_time_is_told_by_unit_and_by_cause(capsys: Capsys, image: Path, tmp_path: Path) -> None:
    expected = NemInterpreter().time(NemInterpreter().load(CONV)).cycles
    done = invoke(capsys, "tcb", "time", image)
    assert (done.status, done.err) == (0, "")
    cycles = nacre.TcbImage.load(image).time().cycles
    assert done.out.startswith(f"cycles: {cycles:,} on npm_lite; {expected:,} on ideal hardware\n")
    assert "\nNMU[0]@0         4  14,120  " in done.out
    assert "\nburst " in done.out
    found = json.loads(invoke(capsys, "tcb", "time", image, "--format", "json").out)
    assert (found["cycles"], found["ideal_cycles"]) == (cycles, expected)
    assert len(found["tasks"]) == 17
    assert max(task["end"] for task in found["tasks"]) == cycles
    ideal = nacre.bind(CONV, "ideal")
    assert ideal.time().cycles == expected


def test_a_run_that_would_never_end_is_told(capsys: Capsys, image: Path, tmp_path: Path) -> None:
    text = tmp_path / "c.txt"
    whole = nacre.TcbImage.load(image).text
    text.write_text(whole.replace("join @6 wait e0.t1>=4", "join @6 wait e0.t1>=5"))
    for verb in ("time", "run"):
        done = invoke(capsys, "tcb", verb, text)
        assert done.status == 1
        assert "error[TCB51]" in done.out
    found = json.loads(invoke(capsys, "tcb", "time", text, "--format", "json").out)
    assert (found["status"], found["diagnostics"][0]["code"]) == ("stuck", "TCB51")
