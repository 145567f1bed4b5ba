"""`nacre calibrate`: what it prints and writes, and what keeps it from writing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nacre import nem
from nacre.base.rules import RULES
from nacre.calibrate import rules
from nacre.nem.checks.engine import named_device
from nacre.nem.model.calibration import calibration_of, companion_path, read_calibration
from nacre.nem.model.provenance import figures
from tests.calibrate.hidden_device import measure, transfer
from tests.cli.runner import Outcome, invoke

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]
HEAD = "operation,bytes,from,to,cycles\n"
SIZES = [int(100 * 1.8**place) for place in range(12)]
LATENCY = ("--free", "DMA.latency=0..5000")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Transfers of a device with a latency of 240 cycles."""
    rows = measure([transfer(size) for size in SIZES], {"DMA": {"latency": 240}}, noise=0.03)
    lines = [f"transfer,{s},L2,L1,{row.time:.0f}\n" for s, row in zip(SIZES, rows, strict=True)]
    path = tmp_path / "rows.csv"
    path.write_text("".join([HEAD, *lines]))
    return path


def run(capsys: Capsys, table: Path, *options: str | Path) -> Outcome:
    return invoke(capsys, "calibrate", "npm_lite", table, "--starts", "1", *options)


def test_a_fitted_device_is_written_with_where_its_figures_come_from(
    capsys: Capsys, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "board.nem"
    outcome = run(capsys, table, *LATENCY, "--set", "DMA.bandwidth=32", "-o", out)
    assert outcome.status == 0, outcome.err
    assert "npm_lite fitted to 12 rows in 12 groups: 1 free figures" in outcome.out
    assert f"wrote {out}\n" in outcome.out
    text = out.read_text()
    assert nem.format(text) == text
    assert nem.check(out, strict=True) == []
    device = named_device(str(out)).device
    assert (device.name, device.parent and device.parent.name) == ("board", "npm_lite")
    assert device.characteristics["DMA"]["latency"] == pytest.approx(240, rel=0.05)
    bases = {figure.name: figure.basis for figure in figures(device)}
    assert (bases["DMA.latency"], bases["DMA.bandwidth"]) == ("fitted", "assumption")
    assert bases["NMU.int8_macs"] == "fact"


def test_the_calibration_lies_beside_the_device(
    capsys: Capsys, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "board.nem"
    assert run(capsys, table, *LATENCY, "-o", out, "--source", "our board").status == 0
    device = named_device(str(out)).device
    found = calibration_of(device)
    assert found is not None
    assert found == read_calibration(companion_path(out))
    assert (found.rows, found.groups, found.source) == (12, 12, "our board")
    by_name = {figure.name: figure for figure in found.figures}
    assert by_name["DMA.latency"].provenance == "fitted"
    assert by_name["NMU.int8_macs"].provenance == "fact"
    assert by_name["VPU.latency"].provenance == "assumed"
    assert by_name["DMA.latency"].value == device.characteristics["DMA"]["latency"]
    # A figure that somebody changes since is another device's.
    out.write_text(out.read_text().replace("latency = ", "latency = 1"))
    assert calibration_of(named_device(str(out)).device) is None


def test_a_device_of_a_file_is_fitted_on(capsys: Capsys, table: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.nem", tmp_path / "second.nem"
    assert run(capsys, table, *LATENCY, "-o", first).status == 0
    again = ("calibrate", first, table, "--starts", "1", "--free", "DMA.bandwidth=8..128")
    assert invoke(capsys, *again, "-o", second).status == 0
    device = named_device(str(second)).device
    assert device.line[:3] == ("second", "first", "npm_lite")
    assert nem.check(second, strict=True) == []
    assert set(device.characteristics["DMA"]) == {"latency", "bandwidth"}


def test_json_has_the_figures_the_bands_and_every_row(capsys: Capsys, table: Path) -> None:
    outcome = run(capsys, table, *LATENCY, "--format", "json")
    found = json.loads(outcome.out)
    (figure,) = found["figures"]
    assert (figure["name"], figure["start"], figure["provenance"]) == ("DMA.latency", 4, "fitted")
    assert len(found["times"]) == 12
    assert found["overall"]["low"] < 1 < found["overall"]["high"]
    assert found["findings"] == {"diagnostics": [], **_no_findings(found["findings"])}


def _no_findings(found: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in found.items() if key != "diagnostics"}


def test_a_fit_at_the_edge_is_shown_and_not_written(
    capsys: Capsys, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "board.nem"
    outcome = run(capsys, table, "--free", "DMA.latency=0..50", "-o", out)
    assert outcome.status == 1
    assert "error[CAL10]" in outcome.err
    assert "DMA.latency" in outcome.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--free", "DMA.latncy=0..50"], "CAL08"),
        (["--free", "DMA.latency", "--free", "DMA.latency=0..5"], "CAL08"),
        (["--free", "DMA.latency", "--set", "DMA.latency=5"], "CAL08"),
        ([], "CAL08"),
        (["--free", "DMA.latency=9..9"], "CAL09"),
        (["--free", "DMA.bandwidth=0..9"], "CAL09"),
        (["--free", "DMA.latency", "--set", "DMA.bandwidth=0"], "CAL09"),
        (["--free", "DMA.latency", "--free", "DMA.bandwidth", "--free", "DMA.burst"], "CAL07"),
    ],
)
def test_what_is_asked_for_in_vain_has_a_code(
    capsys: Capsys, table: Path, tmp_path: Path, options: list[str], code: str
) -> None:
    outcome = run(capsys, table, *options, "-o", tmp_path / "board.nem")
    assert outcome.status == 1
    assert f"error[{code}]" in outcome.err
    assert not (tmp_path / "board.nem").exists()


def test_figures_and_rows_are_complained_about_together(capsys: Capsys, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{HEAD}transfer,64,L2,L1,0\ntransfr,64,L2,L1,9\n")
    outcome = run(capsys, path, "--free", "DMA.latncy")
    assert outcome.status == 1
    for text in ("CAL08", "CAL03", "CAL05", "did you mean `DMA.latency`?", "rows.csv:3:1"):
        assert text in outcome.err


def test_rows_that_contradict_each_other_are_pointed_out(capsys: Capsys, table: Path) -> None:
    table.write_text(table.read_text() + "transfer,100,L2,L1,900\n")
    outcome = run(capsys, table, *LATENCY)
    assert outcome.status == 0
    assert "warning[CAL11]: transfer 100 bytes L2 to L1 takes 900 cycles here" in outcome.err


@pytest.mark.parametrize("cycles", [3, 10**9])
def test_a_time_that_no_machine_of_the_others_takes_is_refused(
    capsys: Capsys, table: Path, cycles: int
) -> None:
    table.write_text(table.read_text() + f"transfer,5000,L2,L1,{cycles}\n")
    outcome = run(capsys, table, *LATENCY, "-o", "board.nem")
    assert outcome.status == 1
    assert "error[CAL17]: transfer 5000 bytes L2 to L1 takes a time" in outcome.err
    assert not Path("board.nem").exists()


def test_rows_of_one_workload_tell_no_two_figures_apart(capsys: Capsys, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(HEAD + "transfer,64,L2,L1,300\n" * 12)
    outcome = run(capsys, path, *LATENCY, "--free", "DMA.bandwidth=4..256")
    assert "warning[CAL13]" in outcome.err


def test_a_device_that_is_another_machine_is_pointed_out(capsys: Capsys, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    times = [3, 100_000, 7, 900_000, 5, 4_000_000]
    path.write_text(HEAD + "".join(f"transfer,{64 + i},L2,L1,{t}\n" for i, t in enumerate(times)))
    outcome = run(capsys, path, *LATENCY)
    assert "warning[CAL14]" in outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--free", "DMA.latency=5"], "is no figure such as NMU.latency=0..5000"),
        (["--set", "DMA.latency"], "is no figure such as NMU.latency=120"),
        (["--set", "DMA.latency=1", "--set", "DMA.latency=2"], "is set twice"),
        (["--clock", "fast"], "is not a whole number such as 16"),
        (["--name", "a b"], "is no name of a device"),
        (["-o", "device.txt"], "a device's file ends in .nem"),
        (["-o", "-"], "is standard output"),
        (["-o", "no/where.nem"], "is no folder"),
    ],
)
def test_wrong_usage_is_refused_before_the_work(
    capsys: Capsys, table: Path, options: list[str], message: str
) -> None:
    outcome = run(capsys, table, *LATENCY, *options)
    assert outcome.status == 2
    assert message in outcome.err


def test_without_scipy_it_says_what_to_install(
    capsys: Capsys, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    outcome = run(capsys, table, *LATENCY)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == "nacre: calibrate needs scipy: install `nacre[calibrate]`\n"


def test_files_that_are_there_are_kept_unless_forced(
    capsys: Capsys, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "board.nem"
    out.write_text("# mine\n")
    outcome = run(capsys, table, *LATENCY, "-o", out)
    assert outcome.status == 2
    assert "there already, with other content" in outcome.err
    assert out.read_text() == "# mine\n"
    assert not companion_path(out).exists()
    assert run(capsys, table, *LATENCY, "-o", out, "--force").status == 0
    assert run(capsys, table, *LATENCY, "-o", out).status == 0  # the same again


def test_the_device_that_is_read_is_not_written_over(
    capsys: Capsys, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "board.nem"
    assert run(capsys, table, *LATENCY, "-o", out).status == 0
    outcome = invoke(capsys, "calibrate", out, table, *LATENCY, "-o", out, "--force")
    assert outcome.status == 2
    assert "is read, and would be written over" in outcome.err


def test_every_code_has_a_case_here() -> None:
    folder = Path(__file__).parent
    cases = "".join(path.read_text() for path in sorted(folder.glob("test_*.py")))
    declared = [name for name in vars(rules) if name.startswith("CAL")] + ["CAL15"]
    assert set(declared) <= RULES.keys()
    assert [
        code for code in declared if f'"{code}"' not in cases and f"[{code}]" not in cases
    ] == []
