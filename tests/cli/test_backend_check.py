from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

from nacre.nem.run.machine import backends
from nacre.nem.run.machine.backends import NumpyBackend
from nacre.nem.run.memory.arrays import RegionView
from tests.cli.runner import invoke

Capsys = pytest.CaptureFixture[str]


class OffByOne:
    """The reference, but for relu of i8."""

    def supports(self, opcode: str) -> bool:
        return opcode != "tanh"

    def execute(
        self,
        opcode: str,
        inputs: list[RegionView],
        outputs: list[RegionView],
        attrs: dict[str, object],
    ) -> None:
        NumpyBackend().execute(opcode, inputs, outputs, attrs)
        if opcode == "relu" and outputs[0].dtype == np.int8:
            outputs[0] += np.int8(1)


@pytest.fixture
def off_by_one(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(backends._FACTORIES, "off_by_one", OffByOne)
    return "off_by_one"


@pytest.mark.full
def test_the_reference_passes(capsys: Capsys) -> None:
    outcome = invoke(capsys, "backend-check", "numpy")
    assert (outcome.status, outcome.err) == (0, "")
    *_, last = outcome.out.splitlines()
    assert last.startswith("numpy: 47 opcodes, ")
    assert last.endswith(" exact")
    lines = {line.split()[0]: line.split()[-1] for line in outcome.out.splitlines() if line.split()}
    assert {lines[name] for name in ("gemm", "relu", "cast", "softmax")} == {"exact"}


def test_what_differs_is_shown_and_fails(capsys: Capsys, off_by_one: str) -> None:
    outcome = invoke(capsys, "backend-check", off_by_one, "--opcode", "relu", "--opcode", "tanh")
    assert outcome.status == 1
    text = " ".join(outcome.out.split())
    assert "differs: element [0, 0] is " in text
    assert "off_by_one: 2 opcodes, " in text
    assert "3 differs" in text
    assert "9 not supported" in text


def test_what_is_not_supported_does_not_fail(capsys: Capsys, off_by_one: str) -> None:
    outcome = invoke(capsys, "backend-check", off_by_one, "--opcode", "tanh")
    assert outcome.status == 0
    assert "not supported" in outcome.out


def test_json_has_a_row_for_every_combination(capsys: Capsys, off_by_one: str) -> None:
    outcome = invoke(capsys, "backend-check", off_by_one, "--opcode", "relu", "--format", "json")
    assert outcome.status == 1
    report = json.loads(outcome.out)
    assert (report["backend"], report["agrees"]) == ("off_by_one", False)
    verdicts = {row["types"]: row["verdict"] for row in report["rows"]}
    assert {types for types, verdict in verdicts.items() if verdict == "differs"} == {
        "i8",
        "i8 per_tensor",
        "i8 per_channel",
    }
    assert {row["opcode"] for row in report["rows"]} == {"relu"}
    assert all(row["cases"] > 0 for row in report["rows"])


@pytest.mark.skipif(
    importlib.util.find_spec("NpmPyTorchApi") is not None, reason="the vendor's library is there"
)
def test_a_vendor_library_that_is_missing_is_said_to_be(capsys: Capsys) -> None:
    outcome = invoke(capsys, "backend-check", "npm")
    assert (outcome.status, outcome.out) == (2, "")
    assert "backend `npm` needs the vendor's library `NpmPyTorchApi`" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonesuch"], "no backend `nonesuch`; known are `numpy`, `npm`"),
        (["numpy", "--opcode", "relv"], "no opcode `relv`; did you mean `relu`?"),
        (["numpy", "--opcode", "transfer"], "no opcode `transfer`"),
        ([], "Missing argument 'NAME'"),
    ],
)
def test_wrong_usage_has_status_2(capsys: Capsys, arguments: list[str], message: str) -> None:
    outcome = invoke(capsys, "backend-check", *arguments)
    assert outcome.status == 2
    assert message in outcome.err
