"""If and Loop of ONNX in files: what `nac run` computes, beside onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from tests.cli.runner import invoke
from tests.core.onnx.test_control import (
    BOOL,
    I64,
    Array,
    Proto,
    X,
    graph,
    info,
    model,
    node,
    reference,
)

SHAPE = (2, 3)
TRUE, FALSE = np.array(True), np.array(False)


def branch(*nodes: Proto, out: str = "o") -> Proto:
    return graph(nodes, [], [info(out, shape=SHAPE)])


def choice(then: Proto, other: Proto, condition: str = "c", out: str = "y") -> Proto:
    return node("If", condition, out, then_branch=then, else_branch=other)


def nested_if() -> bytes:
    def inner(first: str, second: str) -> Proto:
        parts = branch(node(first, "x", "o")), branch(node(second, "x", "o"))
        return branch(choice(*parts, condition="d", out="p"), out="p")

    inputs = [info("x", shape=SHAPE), info("c", BOOL, ()), info("d", BOOL, ())]
    whole = choice(inner("Abs", "Neg"), inner("Exp", "Relu"))
    return model(graph([whole], inputs, [info("y", shape=SHAPE)]))


def loop(body: list[Proto], trips: int | None, start: bool = True, **held: Array) -> bytes:
    """An array carried through rounds; every round is collected."""
    given = [info("i", I64, ()), info("go", BOOL, ()), info("v", shape=SHAPE)]
    made = [info("on", BOOL, ()), info("w", shape=SHAPE), info("s", shape=SHAPE)]
    inside = graph([*body, node("Neg", "w", "s")], given, made)
    name = "_" if trips is None else "n"
    whole = node("Loop", f"{name} start x", "y all", body=inside)
    held |= {"start": np.array(start)} | ({} if trips is None else {"n": np.array(trips)})
    outputs = [info("y", shape=SHAPE), info("all")]
    return model(graph([whole], [info("x", shape=SHAPE)], outputs, **held))


GO_ON = node("Identity", "go", "on")
SUM = [node("Cast", "i", "f", to=1), node("Mul", "v f", "m"), node("Add", "m x", "w")]


def choosing_loop() -> bytes:
    double, less = node("Mul", "v two", "o"), node("Sub", "v x", "o")
    body = [
        GO_ON,
        node("ReduceSum", "v", "sum", keepdims=0),
        node("Less", "sum five", "c"),
        choice(branch(double), branch(less), out="w"),
    ]
    return loop(body, 5, two=np.array(2, np.float32), five=np.array(5, np.float32))


def looping_loop() -> bytes:
    given = [info("j", I64, ()), info("going", BOOL, ()), info("u", shape=SHAPE)]
    made = [info("still", BOOL, ()), info("t", shape=SHAPE)]
    nodes = [
        node("Identity", "going", "still"),
        node("Mul", "u half", "h"),
        node("Add", "h v", "t"),
    ]
    inner = node("Loop", "two _ v", "w", body=graph(nodes, given, made))
    return loop([GO_ON, inner], 3, two=np.array(2), half=np.array(0.5, np.float32))


def counted_break() -> bytes:
    """A condition of the round alone: known before anything is computed."""
    return loop([*SUM, node("Less", "i two", "on")], 10, two=np.array(2))


RUNS: dict[str, tuple[bytes, dict[str, Array]]] = {
    **{
        f"nested If, {c} and {d}": (nested_if(), {"x": X, "c": c, "d": d})
        for c in (TRUE, FALSE)
        for d in (TRUE, FALSE)
    },
    "once": (loop([*SUM, GO_ON], 1), {"x": X}),
    "four rounds": (loop([*SUM, GO_ON], 4), {"x": X}),
    "a break by the count": (counted_break(), {"x": X}),
    "no count, a break": (
        loop([*SUM, node("Less", "i two", "on")], None, two=np.array(2)), {"x": X},
    ),
    "a choice in rounds": (choosing_loop(), {"x": X}),
    "rounds in rounds": (looping_loop(), {"x": X}),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_file_computes_what_onnxruntime_does(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, feeds = RUNS[name]
    expected = reference(raw, feeds)
    (tmp_path / "m.onnx").write_bytes(raw)
    nac.save(nac.build(tmp_path / "m.onnx"), tmp_path / "m.nac")
    loaded = nac.load(tmp_path / "m.nac")
    for found in (loaded.run(feeds), loaded.session(optimise=False).run(feeds)):
        assert [one.shape for one in found] == [one.shape for one in expected]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
    arguments: list[Any] = ["nac", "run", tmp_path / "m.nac", "--output", f"0={tmp_path / 'y.npy'}"]
    for key, array in feeds.items():
        np.save(tmp_path / f"{key}.npy", array)
        arguments += ["--input", f"{key}={tmp_path / key}.npy"]
    outcome = invoke(capsys, *map(str, arguments))
    assert outcome.status == 0, outcome.text
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected[0], rtol=1e-5)


def without_collecting(trips: int, start: bool = True) -> bytes:
    given = [info("i", I64, ()), info("go", BOOL, ()), info("v", shape=SHAPE)]
    inside = graph([*SUM, GO_ON], given, [info("on", BOOL, ()), info("w", shape=SHAPE)])
    held = {"n": np.array(trips), "start": np.array(start)}
    nodes = [node("Loop", "n start x", "y", body=inside)]
    return model(graph(nodes, [info("x", shape=SHAPE)], [info("y", shape=SHAPE)], **held))


@pytest.mark.parametrize(("trips", "start"), [(0, True), (-1, True), (3, False)])
def test_no_round_at_all_gives_what_it_is_given(trips: int, start: bool, tmp_path: Path) -> None:
    raw = without_collecting(trips, start)
    (expected,) = reference(raw, {"x": X})
    (tmp_path / "m.onnx").write_bytes(raw)
    (found,) = nac.build(tmp_path / "m.onnx").run({"x": X})
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found, X)


REFUSED = {
    "empty": (loop([*SUM, GO_ON], 0), "no elements"),
    "by data": (
        loop([*SUM, node("ReduceMax", "w", "most", keepdims=0), node("Less", "most nine", "on")],
             10, nine=np.array(9, np.float32)),
        "its condition is computed when the model runs",
    ),
    "endless": (without_collecting(1 << 62), "more than 1024"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_flat_program_can_say_is_refused(name: str, tmp_path: Path) -> None:
    raw, words = REFUSED[name]
    (tmp_path / "m.onnx").write_bytes(raw)
    with pytest.raises(InputError, match="ONX01") as refused:
        nac.build(tmp_path / "m.onnx")
    assert words in str(refused.value)
