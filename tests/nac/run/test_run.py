"""Running: fixtures, branches, state, lifted constants, inputs, memory, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from nacre.base.diagnostics import InputError
from nacre.core.values import Array
from nacre.nac.format.file import to_bytes
from nacre.nac.format.values import Command, Resource, Tick
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.binding import Ref
from nacre.nac.program.interface import InputType, Interface, StateRecord, StateTable, encode_record
from nacre.nac.run.model import NacModel, load
from nacre.nac.verify import verify
from tests.nac.files import FIXTURES, changed, small
from tests.nac.oracle import exact_output

F32 = np.float32
X = np.array([[1, 2, 3], [-1, 0.5, 2]], F32)


def made(assembler: Assembler, **given: Any) -> NacModel:  # noqa: ANN401 - see Assembler.file
    raw = to_bytes(assembler.file(**given))
    assert verify(raw) == []
    return load(raw)


def codes(refused: pytest.ExceptionInfo[InputError]) -> list[str]:
    return [d.code for d in refused.value.diagnostics]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_fixture_gives_what_pytorch_gave(path: Path) -> None:
    stored = np.load(path.with_suffix(".npz"))
    model = load(path)
    (found,) = model.run({model.inputs[0].name: stored["in0"]})
    wanted = stored["torch_out"]
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    # The figure that the format's own runtime reached, with sums in their order. Where sums are in
    # another one, eight units of the last place are what those of 256 products differ by:
    # convolutions go window by window, and BLAS may take an order of its own.
    figure = np.abs(stored["ref_runtime_out"] - wanted).max()
    is_in_order = _blas_adds_in_order() and not path.stem.startswith("cnn")
    slack = 0 if is_in_order else 8 * np.spacing(np.abs(wanted).max())
    assert np.abs(found - wanted).max() <= figure + slack


def _blas_adds_in_order() -> bool:
    """Whether sums of a product run from first to last, each step rounded once."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(4, 256)).astype(F32), rng.normal(size=(256, 256)).astype(F32)
    sums = np.zeros((4, 256), F32)
    for k in range(256):
        sums = (sums + a[:, k, None].astype(np.float64) * b[k]).astype(F32)
    return bool((a @ b == sums).all())


@pytest.mark.parametrize(
    "path", [p for p in FIXTURES if ".none." in p.name], ids=lambda path: path.stem
)
def test_a_fixture_is_no_further_from_the_truth_than_pytorch_was(path: Path) -> None:
    stored = np.load(path.with_suffix(".npz"))
    model = load(path)
    (found,) = model.run({model.inputs[0].name: stored["in0"]})
    truth = exact_output(model, stored["in0"])
    assert np.abs(found - truth).max() <= np.abs(stored["torch_out"] - truth).max() + 1e-8


def test_a_small_program() -> None:
    model = load(to_bytes(small()))
    y = np.maximum(X @ np.arange(6).reshape(2, 3).T + [0.5, -0.5], 0)
    total = y.sum(1, keepdims=True)
    first, second = model.run({"x": X})
    np.testing.assert_allclose(first, y + total)
    np.testing.assert_allclose(second, total)


def test_a_session_runs_for_inputs_of_any_shape() -> None:
    session = load(to_bytes(small())).session()
    for rows in (1, 4, 1):
        assert session.run({"x": np.ones((rows, 3), F32)})[0].shape == (rows, 2)


def test_outputs_belong_to_the_caller() -> None:
    assembler = Assembler()
    x = assembler.input("x")
    w = assembler.parameter(assembler.weight("w", X))
    same = assembler.call("nac.view", x, (6,))
    assembler.output(x, same, w, same)
    session = made(assembler).session()
    given = X.copy()
    for array in session.run({"x": given}):
        array[...] = 9
    assert np.array_equal(given, X)
    np.testing.assert_array_equal(session.run({"x": given})[2], X)


# Branches


def test_control_flow_takes_one_branch() -> None:
    assembler = Assembler()
    x = assembler.input("x")
    total = assembler.call("aten.sum.default", x, None)
    chosen = assembler.branch(assembler.call("nac.gt", total, 0.0), 2, 3)
    assembler.end_branch(assembler.call("nac.neg", x))
    double = assembler.call("nac.add", x, x)
    assembler.end_branch(assembler.call("nac.add", double, 1.0))
    assembler.output(assembler.call("aten.relu.default", chosen))
    model = made(assembler)
    np.testing.assert_array_equal(model.run({"x": X})[0], np.maximum(-X, 0))
    np.testing.assert_array_equal(model.run({"x": -X})[0], np.maximum(-2 * X + 1, 0))


def test_branches_nest() -> None:
    assembler = Assembler()
    x = assembler.input("x")
    outer = assembler.branch(assembler.call("nac.gt", x, 0.0), 8, 1)
    limit = assembler.call("nac.gt", x, 10.0)
    inner = assembler.branch(limit, 2, 2)
    assembler.end_branch(assembler.call("nac.add", x, 100.0))
    assembler.end_branch(assembler.call("nac.add", x, 10.0))
    assembler.call("nac.neg", inner)
    assembler.end_branch(inner)
    assembler.end_branch(x)
    assembler.output(outer)
    model = made(assembler)
    for given, wanted in ((-1.0, -1.0), (5.0, 15.0), (20.0, 120.0)):
        assert model.run({"x": np.array([given], F32)})[0] == [wanted]


def _experts(threshold: int, *factors: float) -> NacModel:
    assembler = Assembler()
    x = assembler.input("x")
    merged = assembler.converge(x, threshold, [2] * len(factors))
    for factor in factors:
        assembler.end_branch(assembler.call("aten.mul.Tensor", x, factor))
    assembler.output(merged)
    return made(assembler)


def test_convergence_averages_what_agrees() -> None:
    x = np.array([[1.0, -2.0, 0.5]], F32)
    np.testing.assert_allclose(_experts(90, 1.0, 2.0, 3.0).run({"x": x})[0], 2 * x, rtol=1e-6)
    # The third points the other way: its cosine to the others is -1, theirs to the rest is 1.
    np.testing.assert_allclose(_experts(50, 4.0, 2.0, -1.0).run({"x": x})[0], 3 * x, rtol=1e-6)


def test_convergence_takes_the_nearest_where_nothing_agrees() -> None:
    x = np.array([[1.0, -2.0, 0.5]], F32)
    # Each branch points against the mean of the others.
    np.testing.assert_allclose(_experts(99, 1.0, -1.1).run({"x": x})[0], 1.0 * x, rtol=1e-6)
    np.testing.assert_allclose(_experts(0, 5.0).run({"x": x})[0], 5 * x)


# State and lifted constants


def _counter(initial: float | tuple[float, ...] = 0.0, returned: bool = False) -> NacModel:
    assembler = Assembler()
    x = assembler.input("x")
    state = assembler.state(4, "total")
    total = assembler.call("nac.add", state, x)
    assembler.output(assembler.call("nac.neg", total), total)
    table = StateTable((StateRecord(4, 1, "f32", (2,), initial, "total", returned),))
    return made(assembler, resources=[Resource("nacre.state.json", encode_record(table))])


def test_state_is_kept_by_a_session() -> None:
    model = _counter()
    ones = np.ones(2, F32)
    session = model.session()
    for count in (1, 2, 3):
        (found,) = session.run({"x": ones})
        np.testing.assert_array_equal(found, -count * ones)
        np.testing.assert_array_equal(session.state["total"], count * ones)
    session.reset()
    np.testing.assert_array_equal(session.run({"x": ones})[0], -ones)
    np.testing.assert_array_equal(model.run({"x": ones})[0], -ones)  # each starts anew


def test_a_state_may_be_given_and_returned() -> None:
    model = _counter((5.0, 6.0), returned=True)
    one = np.ones(2, F32)
    np.testing.assert_array_equal(model.run({"x": one})[1], [6, 7])
    np.testing.assert_array_equal(model.run({"x": one, "total": 9 * one})[1], [10, 10])
    assert [i.name for i in model.inputs] == ["x"]
    assert [(i.name, i.dtype, i.shape) for i in model.all_inputs][1] == ("total", "f32", (2,))


def test_a_run_that_fails_leaves_the_state() -> None:
    session = _counter().session()
    session.run({"x": np.ones(2, F32)})
    with pytest.raises(InputError):
        session.run({"x": np.ones(3, F32)})
    np.testing.assert_array_equal(session.state["total"], [1, 1])


def test_a_lifted_constant_is_there_unless_it_is_given() -> None:
    assembler = Assembler()
    x = assembler.input("x")
    scale = assembler.lift_constant(2.5, "scale")
    listed = assembler.lift_constant((1, 2, 3))
    assembler.output(
        assembler.call("aten.mul.Tensor", x, scale), assembler.call("nac.add", x, listed)
    )
    model = made(assembler)
    first, second = model.run({"x": X})
    np.testing.assert_array_equal(first, X * F32(2.5))
    np.testing.assert_array_equal(second, X + np.array([1, 2, 3], F32))
    given = model.run({"x": X, "scale": np.array(3, F32)})[0]
    np.testing.assert_array_equal(given, X * 3)


def test_a_lifted_constant_whose_value_was_lost_must_be_given() -> None:
    assembler = Assembler()
    lost = assembler.lift_constant("Tensor_torch.Size([2])_torch.float32", "mask")
    assembler.output(assembler.call("nac.neg", lost))
    model = made(assembler)
    with pytest.raises(InputError) as refused:
        model.run({})
    assert codes(refused) == ["NAC44"]
    np.testing.assert_array_equal(model.run({"mask": X})[0], -X)


# Inputs


def test_inputs_are_checked() -> None:
    interface = Interface({"x": InputType("f32", (2, 3))})
    file = changed(small(), RSRC=(Resource("nacre.interface.json", encode_record(interface)),))
    model = load(to_bytes(file))
    assert [(i.name, i.dtype, i.shape) for i in model.inputs] == [("x", "f32", (2, 3))]
    model.run({"x": X})
    wrong: list[tuple[Any, list[str]]] = [
        ({}, ["NAC44"]),
        ({"y": X}, ["NAC44", "NAC45"]),
        ({"x": X.astype(np.float64)}, ["NAC46"]),
        ({"x": X[:1]}, ["NAC46"]),
        ({"x": X.astype(">f4")}, ["NAC46"]),
        ({"x": [[1], [2, 3]]}, ["NAC46"]),
        ({"x": np.array(["a"])}, ["NAC46"]),
        ([X], ["NAC46"]),
    ]
    for given, expected in wrong:
        with pytest.raises(InputError) as refused:
            model.run(given)
        assert codes(refused) == expected


def test_an_input_of_unknown_type_is_still_no_empty_array() -> None:
    with pytest.raises(InputError) as refused:
        load(to_bytes(small())).run({"x": np.zeros((0, 3), F32)})
    assert codes(refused) == ["NAC46"]


# Refusals


def test_an_unknown_operation_loads_with_a_warning_and_does_not_run() -> None:
    assembler = Assembler()
    x = assembler.input("x")
    y = assembler.call("aten.relo.default", x)
    z = assembler.call("custom.op", assembler.call("aten.relo.default", y))
    assembler.output(z)
    raw = to_bytes(assembler.file())
    first, second = verify(raw)
    assert [first.code, second.code] == ["NAC40", "NAC40"]
    assert {first.severity, second.severity} == {"warning"}
    assert "`aten.relo.default`" in first.message
    assert "used 2 times" in first.message
    assert first.data is not None
    assert first.data["instruction"] == 1
    assert first.help is not None
    assert "relu.default" in first.help
    assert "`custom.op`" in second.message
    with pytest.raises(InputError) as refused:
        load(raw).run({"x": np.ones(2, np.float32)})
    assert [d.code for d in refused.value.diagnostics] == ["NAC71", "NAC71"]
    assert 'register_operation("custom.op"' in str(refused.value.diagnostics[1].help)


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("aten.relu.default", (), "argument `self` is nothing, expected a tensor"),
        ("aten.softmax.int", (Ref(0), "x"), "argument `dim` is x, expected an integer"),
        ("aten.relu.default", (Ref(0), 1, 2), "argument 1 is 1, for which there is no place"),
        ("aten.permute.default", (Ref(0), (0.5, 1.0)), "argument `dims`"),
        ("aten._to_copy.default", (Ref(0), "complex6"), "argument 1 is complex6"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_at_load(
    name: str, given: tuple[Any, ...], told: str
) -> None:
    assembler = Assembler()
    assembler.input("x")
    assembler.output(assembler.call(name, *given))
    with pytest.raises(InputError) as refused:
        load(to_bytes(assembler.file()))
    assert codes(refused) == ["NAC41"]
    assert told in refused.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("nac.view", (Ref(0), (4, 4))),
        ("aten.permute.default", (Ref(0), (0, 0))),
        ("aten.matmul.default", (Ref(0), Ref(0))),
        ("aten.select.int", (Ref(0), 0, 7)),
        ("aten.embedding.default", (Ref(0), 5)),
        ("aten.conv2d.default", (Ref(0), Ref(0))),
        ("aten.dropout.default", (Ref(0), 0.5, True)),
        ("aten.batch_norm.default", (Ref(0), None, None, None, None, True, 0.1, 1e-5, False)),
        ("aten.arange.default", (0,)),
        ("getitem", (Ref(0), 3)),
        ("aten.sum.dim_IntList", (Ref(0), (5,), False, None)),
        ("aten.sym_size.int", (Ref(0), 9)),
        ("aten.squeeze.dim", (Ref(0), 2**40)),
        ("aten.repeat.default", (Ref(0), (1,))),
    ],
)
def test_a_fault_says_where_and_with_what(name: str, given: tuple[Any, ...]) -> None:
    assembler = Assembler()
    assembler.input("x")
    assembler.output(assembler.call(name, *given))
    model = load(to_bytes(assembler.file()))
    with pytest.raises(InputError) as fault:
        model.run({"x": X})
    assert codes(fault) == ["NAC47"]
    (found,) = fault.value.diagnostics
    assert found.data is not None
    assert found.data["instruction"] == 1
    assert f"`{name}` of (" in found.message


def test_nothing_is_returned_for_a_view_that_fails() -> None:
    # The reference returns its input unchanged.
    assembler = Assembler()
    x = assembler.input("x")
    assembler.output(assembler.call("nac.view", x, (5, -1)))
    with pytest.raises(InputError, match=r"6 elements do not divide into \[5, -1\]"):
        made(assembler).run({"x": X})


def test_a_change_in_place_that_nobody_notices_is_a_call_like_others() -> None:
    assembler = Assembler()
    x = assembler.input("x")
    y = assembler.call("nac.neg", x)
    z = assembler.call("aten.add_.Tensor", y, x)
    assembler.output(assembler.call("aten.relu_.default", assembler.call("nac.view", z, (6,))))
    np.testing.assert_array_equal(made(assembler).run({"x": X})[0], np.zeros(6))


@pytest.mark.parametrize("is_view", [False, True])
def test_a_change_in_place_that_others_see_is_refused(is_view: bool) -> None:
    assembler = Assembler()
    y = assembler.call("nac.neg", assembler.input("x"))
    changed_ref = assembler.call("nac.view", y, (6,)) if is_view else y
    z = assembler.call("aten.relu_.default", changed_ref)
    assembler.output(z, y)
    with pytest.raises(InputError) as refused:
        load(to_bytes(assembler.file()))
    assert codes(refused) == ["NAC41"]
    assert "in place" in refused.value.diagnostics[0].message


# Memory and time


def test_memory_goes_when_the_schedule_says() -> None:
    assembler = Assembler()
    x = assembler.input("x")
    for _ in range(6):
        x = assembler.call("nac.neg", x)
    assembler.output(x)
    array = np.ones((64, 64), F32)
    size = array.nbytes
    freed = [Tick(t, (Command(20, t - 1),)) for t in range(1, 7)]
    forwarded = [Tick(t, (Command(30, t + 1),)) for t in range(1, 7)]
    late = [Tick(7, tuple(Command(20, t) for t in range(6)))]
    peaks = {"freed": (freed, 2), "forwarded": (forwarded, 3), "late": (late, 7), "none": ([], 2)}
    for name, (schedule, count) in peaks.items():
        session = made(assembler, schedule=schedule).session(optimise=False)
        np.testing.assert_array_equal(session.run({"x": array})[0], array)
        assert session.peak_bytes == count * size, name


def test_a_weight_takes_memory_from_its_preload_to_its_free() -> None:
    assembler = Assembler()
    x = assembler.input("x")
    y = assembler.call("nac.neg", x)
    w = assembler.parameter(assembler.weight("w", np.ones((100,), F32)))
    assembler.output(assembler.call("aten.mul.Tensor", y, w))
    early = [Tick(0, (Command(40, 2),)), Tick(3, (Command(20, 2), Command(20, 1)))]
    session = made(assembler, schedule=early).session(timed=True)
    session.run({"x": np.ones((100,), F32)})
    assert [t.bytes for t in session.timings] == [800, 1200, 1200, 800]
    assert [t.name for t in session.timings][1:3] == ["nac.neg", "<INPUT> load_param"]
    assert all(t.seconds >= 0 for t in session.timings)


def test_a_run_keeps_to_its_memory() -> None:
    model = load(to_bytes(small()))
    with pytest.raises(InputError) as refused:
        model.session(max_bytes=100).run({"x": np.ones((9, 3), F32)})
    assert codes(refused) == ["NAC48"]
    model.session(max_bytes=10_000).run({"x": np.ones((9, 3), F32)})


# Core operations under their own names


def test_an_operation_of_core_ir_is_a_call_of_its_own() -> None:
    assembler = Assembler()
    x = assembler.input("x")
    hard = assembler.call("core.HardSigmoid", x, 0.3, 0.4)
    joined = assembler.call("core.Concat", x, hard, 1)
    assembler.output(joined, assembler.call("core.Reduce", x, "LogSumExp", (1,), True))
    first, second = made(assembler).run({"x": X})
    hard_x: Array = np.clip(X * F32(0.3) + F32(0.4), 0, 1)
    np.testing.assert_allclose(first, np.concatenate([X, hard_x], 1), rtol=1e-6)
    np.testing.assert_allclose(second, np.log(np.exp(X).sum(1, keepdims=True)), rtol=1e-6)


def test_the_text_spelling_of_lengths_is_read() -> None:
    file = small()
    steps = tuple(
        replace(s, c=(2, *s.c[1:])) if s.op == 2 and s.c else
        replace(s, c=(3, *s.c[1:])) if s.op == 3 else s
        for s in file.instructions
    )  # fmt: skip
    spelt = changed(file, OPS=steps)
    assert verify(to_bytes(spelt)) == []
    one, other = (load(to_bytes(f)).run({"x": X})[0] for f in (file, spelt))
    np.testing.assert_array_equal(one, other)
