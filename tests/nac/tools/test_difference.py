from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.nac import load, save, to_bytes
from nacre.nac.format.values import NacFile, Resource
from nacre.nac.program.assembly import Assembler
from nacre.nac.tools.alignment import align
from nacre.nac.tools.difference import Row, difference, max_difference
from nacre.nac.tools.opening import open_nac
from tests.nac.files import FIXTURES, FOLDER, changed, headed, small


def rows(first: NacFile, second: NacFile, tolerance: float = 0.0) -> tuple[Row, ...]:
    sides = open_nac(to_bytes(first)), open_nac(to_bytes(second))
    return difference(*sides, tolerance=tolerance).rows


def made(*calls: str, w: float = 1.0, more: str = "") -> NacFile:
    build = Assembler()
    value = build.input("x")
    weight = build.parameter(build.weight("w", np.full(3, w, np.float32)))
    for call in calls:
        value = build.call(call, value)
    build.output(build.call("nac.add", value, weight))
    resources = [Resource("notes", more.encode())] if more else []
    return build.file(resources=resources)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_file_does_not_differ_from_itself(path: Path) -> None:
    assert difference(open_nac(path), open_nac(path)).is_none


def test_an_operation_more_and_one_less() -> None:
    first, second = made("aten.relu.default", "aten.tanh.default"), made("aten.tanh.default")
    found = rows(first, second)
    assert [(r.part, r.change, r.what) for r in found if r.part == "structure"] == [
        ("structure", "removed", "v2 = aten.relu.default(v0)"),
        ("structure", "changed",
         "v3 = aten.tanh.default(v2) -> v2 = aten.tanh.default(v0)"),
    ]  # fmt: skip
    back = rows(second, first)
    assert "added" in [r.change for r in back if r.part == "structure"]


def test_ids_are_no_difference() -> None:
    first = made("aten.relu.default")
    renamed = {named.id: named.id + 7 for named in first.operations}
    names = tuple(type(n)(renamed[n.id], n.text) for n in first.operations)
    steps = tuple(type(i)(renamed.get(i.op, i.op), i.variant, i.c, i.d) for i in first.instructions)
    assert rows(first, changed(first, CMAP=names, OPS=steps)) == ()


def test_other_operands_are_a_change() -> None:
    def file(is_swapped: bool) -> NacFile:
        build = Assembler()
        a, b = build.input("a"), build.input("b")
        build.output(build.call("nac.sub", *((b, a) if is_swapped else (a, b))))
        return build.file()

    (found,) = rows(file(False), file(True))
    assert (found.change, found.what) == ("changed", "v2 = nac.sub(v0, v1) -> v2 = nac.sub(v1, v0)")


def test_weights_are_compared_by_their_elements() -> None:
    (found,) = rows(made(w=1.0), made(w=1.25))
    assert (found.part, found.max_difference) == ("weights", 0.25)
    assert rows(made(w=1.0), made(w=1.25), tolerance=0.25) == ()
    assert rows(made(w=1.0), made(w=float("nan")))[0].max_difference == np.inf


def test_quantised_weights_are_compared_as_the_program_sees_them() -> None:
    first, second = (open_nac(FOLDER / f"mlp.{q}.v16.nac") for q in ("none", "INT8_CHANNEL"))
    found = [r for r in difference(first, second).rows if r.part == "weights"]
    assert len(found) == len(first.parameters)
    shown = {r.what.partition(":")[0]: r.max_difference for r in found}
    for id_, name in first.parameters.items():
        one = load(FOLDER / "mlp.none.v16.nac").weights[id_].astype(np.float64)
        other = load(FOLDER / "mlp.INT8_CHANNEL.v16.nac").weights[id_].astype(np.float64)
        assert shown[name] == max(abs(a - b) for a, b in zip(one.flat, other.flat, strict=True))


def test_moved_weights_are_the_headers_difference(tmp_path: Path) -> None:
    save(load(FOLDER / "mlp.INT8_TENSOR.v16.nac"), tmp_path / "m.nac", "external")
    first, second = open_nac(FOLDER / "mlp.INT8_TENSOR.v16.nac"), open_nac(tmp_path / "m.nac")
    assert [r.what for r in difference(first, second).rows] == ["is_internal: True -> False"]


def test_constants_resources_schedule_and_header() -> None:
    assert [r.part for r in rows(made(), made(more="n"))] == ["resources"]
    assert rows(made(more="a"), made(more="b"))[0].text == "! notes"
    file = small()
    assert [r.part for r in rows(file, changed(file, MMAP=()))] == ["schedule"]
    assert [r.part for r in rows(file, headed(file, d_model=4))] == ["header"]
    more = (*file.constants, type(file.constants[0])(99, 4, b"word"))
    (found,) = rows(file, changed(file, CNST=more))
    assert (found.part, found.text) == ("constants", '+ "word"')


SEQUENCES = st.lists(st.sampled_from("abc"), max_size=20)


@given(SEQUENCES, SEQUENCES)
def test_aligned_stretches_are_equal_and_in_order(first: list[str], second: list[str]) -> None:
    runs = align(first, second)
    ends = (0, 0)
    for a, b, length in runs:
        assert length > 0
        assert a >= ends[0]
        assert b >= ends[1]
        assert first[a : a + length] == second[b : b + length]
        ends = a + length, b + length
    if first == second:
        assert runs == ([(0, 0, len(first))] if first else [])


def test_long_sequences_are_aligned_in_time() -> None:
    first = list(range(60_000))
    second = [-1, *range(1, 60_000), -2, -3]
    assert align(first, second)
    other = [(i * 7919) % 60_000 for i in range(60_000)]
    assert all(first[a] == other[b] for a, b, _ in align(first, other))


def test_the_largest_distance() -> None:
    a = np.array([1.0, np.inf, np.nan, 2.0])
    assert max_difference(a, a) == 0
    assert max_difference(a, np.array([1.0, np.inf, np.nan, 2.5])) == 0.5
    assert max_difference(a, np.array([1.0, -np.inf, np.nan, 2.0])) == np.inf
    assert max_difference(np.zeros(0), np.zeros(0)) == 0
    assert max_difference(np.array([2**60]), np.array([2**60 + 1])) == 1
    signalling = np.array([0x7FA00000], np.uint32).view(np.float32)
    assert max_difference(signalling, np.zeros(1, np.float32)) == np.inf


def test_weights_without_axes_are_compared() -> None:
    """A single number has a distance too."""
    one, other = np.array(2.5, np.float32), np.array(3.5, np.float32)
    assert max_difference(one, other) == 1.0
    assert max_difference(one, one) == 0.0
    assert max_difference(one, np.array(np.nan, np.float32)) == float("inf")
