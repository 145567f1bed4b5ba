"""What a run may take: sizes that a file asks for are refused before anything is computed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.kernels.interface.call import Work
from nacre.nac.format.file import to_bytes
from nacre.nac.format.values import Resource
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.binding import Ref
from nacre.nac.program.interface import InputType, Interface, StateRecord, StateTable, encode_record
from nacre.nac.program.lift import lift
from nacre.nac.run import limits
from nacre.nac.run.dry_run import dry_run
from nacre.nac.run.limits import Limits, limits_for, steps_of
from nacre.nac.run.model import load
from nacre.nac.run.shape_only import shape_only_array
from nacre.nac.verify import verify
from tests.cli.runner import invoke
from tests.clock import in_time
from tests.nac.files import FIXTURES, small

X = np.ones((1, 1, 4, 4), np.float32)
MOST = 32 * 2**20

# Calls on `x` whose constants a stranger chose; each would take seconds, gigabytes, or for ever.
HUGE: dict[str, tuple[str, tuple[Any, ...]]] = {
    "pad": ("aten.constant_pad_nd.default", (Ref(0), (2**23, 0), 0.0)),
    "pads of windows": (
        "aten.max_pool2d.default",
        (Ref(0), (2, 2), (1, 1), (2**13, 2**13), (1, 1), False),
    ),
    "resize": ("core.Resize", (Ref(0), (1, 1, 2**14, 2**14), "nearest", "asymmetric", "floor")),
    "repeat": ("aten.repeat.default", (Ref(0), (2**11, 2**11, 1, 1))),
    "expand": ("aten.expand.default", (Ref(0), (2**24, 1, 4, 4), False)),
    "zeros": ("aten.zeros.default", ((2**30, 2**30),)),
    "arange": ("aten.arange.default", (2**28,)),
    "eye": ("aten.eye.default", (2**14,)),
    "one hot": ("aten.one_hot.default", (Ref(0), 2**30)),
    "adaptive": ("aten.adaptive_avg_pool2d.default", (Ref(0), (2**22 + 1, 3))),
}
# Within the memory, yet of more steps than anybody waits for.
LONG: dict[str, tuple[str, tuple[Any, ...]]] = {
    "window": (
        "aten.avg_pool2d.default",
        (Ref(0), (1000, 1000), (1, 1), (999, 999), False, True, None),
    ),
}


def _file(name: str, given: tuple[Any, ...], is_typed: bool = True) -> bytes:
    """A call on `x`; the number of classes is of integers."""
    made = Assembler()
    x = made.input("x")
    if name == "aten.one_hot.default":
        made_of = made.call("core.Cast", x, "i64")
        given = (Ref(made_of.index), *given[1:])
    first = made.call("nac.neg", x)
    made.output(made.call(name, *given), first)
    types = encode_record(Interface({"x": InputType("f32", X.shape)}))
    return to_bytes(made.file(resources=[Resource("nacre.interface.json", types)] * is_typed))


@contextmanager
def _little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()


@in_time(1)
def _refused(raw: bytes, inputs: dict[str, Any]) -> list[str]:
    """The codes of a refusal that came at once and took nothing."""
    with _little_memory(), pytest.raises(InputError) as refused:
        load(raw).run(inputs)
    return [d.code for d in refused.value.diagnostics]


@pytest.mark.parametrize("what", HUGE)
def test_a_value_of_any_size_is_refused_before_it_is_made(what: str) -> None:
    raw = _file(*HUGE[what])
    assert _refused(raw, {"x": X}) == ["NAC48"]
    (found,) = verify(raw)
    assert found.code == "NAC48"
    assert found.data is not None
    assert found.data["instruction"] >= 2
    assert HUGE[what][0] in found.message
    assert found.help is not None
    assert "max_bytes" in found.help


@pytest.mark.parametrize("what", LONG)
def test_work_without_end_is_refused_before_it_begins(what: str) -> None:
    raw = _file(*LONG[what])
    assert _refused(raw, {"x": X}) == ["NAC52"]
    (found,) = verify(raw)
    assert found.code == "NAC52"
    assert found.help is not None
    assert "max_work" in found.help


def test_types_that_a_file_does_not_say_are_known_in_a_run() -> None:
    raw = _file(*HUGE["repeat"], is_typed=False)
    assert verify(raw) == []
    assert _refused(raw, {"x": X}) == ["NAC48"]


def test_what_is_wrong_with_shapes_is_found_by_verify() -> None:
    found = verify(_file("aten.view.default", (Ref(0), (3, 3))))
    assert [d.code for d in found] == ["NAC47"]
    assert "aten.view.default" in found[0].message


def test_who_means_it_says_so() -> None:
    raw = _file("aten.repeat.default", (Ref(0), (2**12, 2**9, 1, 1)))
    assert _refused(raw, {"x": X}) == ["NAC48"]
    assert verify(raw, max_bytes=2**30) == []
    outputs = load(raw, max_bytes=2**30).run({"x": X})
    assert outputs[0].shape == (2**12, 2**9, 4, 4)
    again = load(raw).session(max_bytes=2**30).run({"x": X})
    assert again[0].nbytes == 2**27
    with pytest.raises(InputError):
        load(raw, max_bytes=2**30, max_work=1000).run({"x": X})


def test_options_allow_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, array = tmp_path / "m.nac", tmp_path / "x.npy"
    path.write_bytes(_file("aten.repeat.default", (Ref(0), (2**12, 2**9, 1, 1))))
    np.save(array, X)
    more = ("--max-bytes", str(2**30))
    for command in (("verify", str(path)), ("run", str(path), "--input", f"x={array}")):
        refused = invoke(capsys, "nac", *command)
        assert refused.status == 1
        assert "NAC48" in refused.out + refused.err
        assert invoke(capsys, "nac", *command, *more).status == 0
        less = invoke(capsys, "nac", *command, *more, "--max-work", "1000")
        assert less.status == 1
        assert "NAC52" in less.out + less.err


def test_limits_grow_with_the_file_and_with_the_inputs() -> None:
    small, large = np.zeros(1, np.float32), np.zeros(2**20, np.float32)
    least = limits_for(0)
    assert least.bytes == MOST
    assert limits_for(1000).bytes == MOST + 8_000
    assert limits_for(0, [large]).bytes > 256 * large.nbytes
    assert limits_for(1000, [large]).work > limits_for(1000, [small]).work
    ids = np.zeros((1, 2048), np.int64)  # the scores of an attention over them
    assert limits_for(0, [ids]).bytes > 12 * 2048**2 * np.float32().nbytes
    assert limits_for(0, [large], 7, 8) == limits_for(10**9, [small], 7, 8)


@pytest.mark.parametrize(
    ("file_bytes", "shapes", "bytes_", "work"),
    [
        (0, [], 0, 0),
        (1000, [], 8_000, 4_000),
        (1000, [(2, 3)], 8_000 + 256 * 24 + 64 * 3**2, 4 * 1006 * 6),
        (0, [(2, 3), (5,)], 256 * 44 + 64 * 5**2, 4 * 11 * 11),
        (0, [(5000, 1)], 256 * 20_000 + 2**30, 4 * 5000 * 5000),
    ],
)
def test_limits_are_those_that_are_declared(
    file_bytes: int, shapes: list[tuple[int, ...]], bytes_: int, work: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    inputs = [np.zeros(shape, np.float32) for shape in shapes]
    monkeypatch.setattr(limits, "machine_bytes", lambda: 2**40)
    assert limits_for(file_bytes, inputs) == Limits(MOST + bytes_, 2**27 + work)
    monkeypatch.setattr(limits, "machine_bytes", lambda: 1000)
    assert limits_for(file_bytes, inputs).bytes == 1000
    assert limits_for(file_bytes, inputs, max_bytes=2000).bytes == 2000


def test_steps_are_counted_by_elements_and_products_go_faster() -> None:
    assert steps_of(Work(elements=10, each=3), 20) == 30
    assert steps_of(Work(elements=10, each=3), 40) == 40
    assert steps_of(Work(elements=10, macs=80), 10) == 20


def test_a_state_of_any_size_is_refused() -> None:
    made = Assembler()
    x, state = made.input("x"), made.state(0, "total")
    made.output(x, state)
    record = StateRecord(0, 1, "f32", (2**28,), 0.0, "total")
    table = Resource("nacre.state.json", encode_record(StateTable((record,))))
    raw = to_bytes(made.file(resources=[table]))
    assert _refused(raw, {"x": X}) == ["NAC48"]
    assert [d.code for d in verify(raw)] == ["NAC48"]


def test_what_depends_on_elements_is_left_to_the_run() -> None:
    made = Assembler()
    x = made.input("x")
    wide = made.call("aten.ones.default", (4,))
    more = made.call("aten.add.Scalar", wide, x, 1)
    made.output(made.call("nac.neg", more))
    types = encode_record(Interface({"x": InputType("f32", (1,))}))
    raw = to_bytes(made.file(resources=[Resource("nacre.interface.json", types)]))
    assert verify(raw) == []
    (found,) = load(raw).run({"x": np.array([2.5], np.float32)})
    assert found.tolist() == [-3.5] * 4


@pytest.mark.parametrize(
    ("call", "given"),
    [("split.Tensor", (1, 0)), ("chunk.default", (2**20, 0)), ("unbind.int", (0,))],
)
@in_time(1)
def test_a_call_of_a_million_parts_is_refused(call: str, given: tuple[int, ...]) -> None:
    made = Assembler()
    x = made.input("x")
    wide = made.call("aten.expand.default", x, (2**20,), False)
    made.output(made.call(f"aten.{call}", wide, *given))
    raw = to_bytes(made.file())
    with pytest.raises(InputError) as refused:
        load(raw).run({"x": np.ones(1, np.float32)})
    assert [d.code for d in refused.value.diagnostics] == ["NAC47"]


def test_lift_makes_no_constant_of_any_size() -> None:
    raw = _file(*HUGE["arange"])
    with _little_memory(), pytest.raises(InputError):
        lift(load(raw))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_run_takes_what_its_dry_run_took(path: Path) -> None:
    """Dry run and run ask for the same memory, call by call: the peak is one."""
    array = np.load(path.with_suffix(".npz"))["in0"]
    model = load(path, keep_bytes=0)
    session = model.session(optimise=False)
    session.run({model.inputs[0].name: array})
    given = {model.inputs[0].instruction: shape_only_array(array.dtype, array.shape)}
    peak = dry_run(model, given, {}, limits_for(model.file_bytes, [array]))
    assert peak == session.peak_bytes


@pytest.mark.parametrize("value", ["a", True, -5, 0, 1.5, [1]])
@pytest.mark.parametrize(
    ("name", "code"),
    [("max_bytes", "NAC48"), ("max_work", "NAC52"), ("memory_limit", "NAC54")],
)
def test_a_limit_is_a_positive_integer(name: str, code: str, value: Any) -> None:  # noqa: ANN401
    raw = to_bytes(small())
    uses: list[Callable[[], object]] = [
        lambda: load(raw, **{name: value}),
        lambda: verify(raw, **{name: value}),
    ]
    if name != "memory_limit":
        uses.append(lambda: load(raw).session(**{name: value}))
    for use in uses:
        with pytest.raises(
            InputError, match=f"`{name}` is .*, expected an integer from 1"
        ) as found:
            use()
        assert [d.code for d in found.value.diagnostics] == [code]


def test_all_limits_are_refused_at_once() -> None:
    wrong: Any = "a"
    with pytest.raises(InputError) as refused:
        load(to_bytes(small()), max_bytes=wrong, max_work=-1, memory_limit=wrong, keep_bytes=-1)
    codes = [d.code for d in refused.value.diagnostics]
    assert codes == ["NAC48", "NAC52", "NAC48", "NAC54"]
