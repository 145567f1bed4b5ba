"""If, Loop and Scan against onnxruntime, and what is refused about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.onnx.importer import from_onnx
from tests.clock import in_time

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.sampled(2)  # together they take long

Array = npt.NDArray[Any]
Proto = Any  # onnx has no types of its own
F32 = np.dtype(np.float32)
I64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -4.0]], np.float32)


def info(name: str, dtype: np.dtype[Any] = F32, shape: Sequence[int] | None = None) -> Proto:
    kind = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    return onnx.helper.make_tensor_value_info(name, kind, shape)


def node(op: str, inputs: str, outputs: str, **attributes: object) -> Proto:
    """A node; `_` stands for an operand that is left out."""
    given = [name if name != "_" else "" for name in inputs.split()]
    return onnx.helper.make_node(op, given, outputs.split(), name=f"n_{op}", **attributes)


def graph(
    nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], **held: Array
) -> Proto:
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in held.items()]
    return onnx.helper.make_graph(nodes, "g", inputs, outputs, tensors)


def model(body: Proto, opset: int = 16) -> bytes:
    imports = [onnx.helper.make_opsetid("", opset)]
    made = onnx.helper.make_model(body, opset_imports=imports, ir_version=8)
    raw: bytes = made.SerializeToString()
    return raw


def reference(raw: bytes, feeds: dict[str, Array]) -> list[Array]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    found: list[Array] = ort.InferenceSession(raw, options).run(None, feeds)
    return found


def compare(raw: bytes, feeds: dict[str, Array], *known: str) -> None:
    """The same outputs as onnxruntime; inputs that are `known` are bound at import."""
    module = from_onnx(raw, constants={name: feeds[name] for name in known})
    got = evaluate(module, {name: feeds[name] for name in module.input_types})
    for one, other in zip(got, reference(raw, feeds), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-6)


def refusals(raw: bytes, constants: dict[str, Array] | None = None) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        from_onnx(raw, constants=constants)
    return caught.value.diagnostics


def choice(then: Sequence[Any], other: Sequence[Any], **held: Array) -> bytes:
    """`If` on an input, both branches giving `y` from `x` of the scope around."""
    branches = {
        "then_branch": graph(then, [], [info("y")]),
        "else_branch": graph(other, [], [info("y")]),
    }
    inputs = [info("c", BOOL, ()), info("x", F32, X.shape)]
    return model(graph([node("If", "c", "z", **branches)], inputs, [info("z")], **held))


ABS_OR_NEG = ([node("Abs", "x", "y")], [node("Neg", "x", "y")])


@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("known", [("c",), ()])
def test_a_branch_sees_the_scope_around_it(condition: bool, known: tuple[str, ...]) -> None:
    compare(choice(*ABS_OR_NEG), {"c": np.array(condition), "x": X}, *known)


def test_of_a_known_condition_only_one_branch_is_looked_at() -> None:
    raw = choice([node("Abs", "x", "y")], [node("NoSuchOp", "x", "y")])
    module = from_onnx(raw, constants={"c": np.array(True)})
    np.testing.assert_array_equal(evaluate(module, {"x": X})[0], np.abs(X))


def test_of_an_unknown_condition_both_branches_are_reported_with_their_place() -> None:
    found = refusals(choice([node("NoSuchA", "x", "y")], [node("NoSuchB", "x", "y")]))
    assert [d.code for d in found] == ["ONX01"] * 3
    assert "`NoSuchA` `n_NoSuchA`" in found[0].message
    assert "in `If` `n_If`: the operation is not known" in found[0].message
    assert "`NoSuchB`" in found[1].message
    assert "its condition is computed when the model runs" in found[2].message
    assert "bind the inputs that it is computed from" in (found[2].help or "")


def test_branches_of_different_shapes_need_a_known_condition() -> None:
    raw = choice([node("Abs", "x", "y")], [node("Transpose", "x", "y")])
    (found,) = refusals(raw)
    assert "the branches give f32[2, 3] and f32[3, 2]" in found.message
    compare(raw, {"c": np.array(False), "x": X}, "c")


@pytest.mark.parametrize("index", [1, -2, 2, -3])
def test_a_branch_that_could_fail_does_not_where_the_other_is_meant(index: int) -> None:
    held = {"i": np.array([index], np.int64)}
    picked = node("Gather", "x i", "y")
    other = node("ReduceMax", "x", "y", axes=[0])
    raw = choice([picked], [other], **held)
    compare(raw, {"c": np.array(False), "x": X})
    if -2 <= index < 2:
        compare(raw, {"c": np.array(True), "x": X})
        return
    with pytest.raises(InputError, match=f"index is {index}, expected -2 to 1"):
        evaluate(from_onnx(raw), {"c": np.array(True), "x": X})
    from_onnx(raw, constants={"c": np.array(False)})
    with pytest.raises(InputError, match=f"the index {index} is outside of axis 0"):
        from_onnx(raw, constants={"c": np.array(True)})


def test_an_integer_division_by_what_is_not_known_fails_where_it_is_meant() -> None:
    branches = {
        "then_branch": graph([node("Div", "a b", "y")], [], [info("y", I64)]),
        "else_branch": graph([node("Identity", "a", "y")], [], [info("y", I64)]),
    }
    inputs = [info("c", BOOL, ()), info("a", I64, (2,)), info("b", I64, (2,))]
    raw = model(graph([node("If", "c", "z", **branches)], inputs, [info("z", I64)]))
    feeds = {"c": np.array(False), "a": np.array([4, 9]), "b": np.array([2, 0])}
    compare(raw, feeds, "c")
    compare(raw, feeds)
    compare(raw, {"c": np.array(True), "a": np.array([4, -9]), "b": np.array([2, 4])})
    with pytest.raises(InputError, match="integer division by zero"):
        evaluate(from_onnx(raw), {**feeds, "c": np.array(True)})


def counted(
    body: Sequence[Any],
    *,
    trips: str = "m",
    goes_on: str = "_",
    carried: Sequence[int] = X.shape,
    scans: int = 1,
) -> bytes:
    """`Loop` that carries `v` from `x`; the body gives `g`, `w` and what it collects, `s`."""
    outputs = [info("g", BOOL), info("w"), info("s", F32, (2, 3))][: 2 + scans]
    inner = graph(body, [info("i", I64, ()), info("c", BOOL, ()), info("v")], outputs)
    results = "last all" if scans else "last"
    loop = node("Loop", f"{trips} {goes_on} x", results, body=inner)
    inputs = [info("m", I64, ()), info("p", BOOL, ()), info("x", F32, carried)]
    used = [value for value in inputs if value.name in (trips, goes_on, "x")]
    return model(graph([loop], used, [info(name) for name in results.split()]))


# The condition passed on; the carried tensor plus the number of the round; its square collected.
COUNTING = (
    node("Identity", "c", "g"),
    node("Cast", "i", "f", to=1),
    node("Add", "v f", "w"),
    node("Mul", "w w", "s"),
)


@given(trips=st.integers(1, 5))
@settings(max_examples=5)
def test_a_loop_is_unrolled_and_what_it_collects_is_stacked(trips: int) -> None:
    compare(counted(COUNTING), {"m": np.array(trips, np.int64), "x": X}, "m")


def test_a_loop_that_never_runs_passes_on_what_it_carries() -> None:
    feeds: dict[str, Array] = {"m": np.array(0, np.int64), "x": X}
    compare(counted(COUNTING[:3], scans=0), feeds, "m")
    # Without a round there is nothing to stack, and Core IR has no empty tensors.
    (found,) = refusals(counted(COUNTING), constants={"m": feeds["m"]})
    assert "output `all`: " in found.message


def test_a_condition_ends_a_loop_where_it_is_known() -> None:
    three = onnx.numpy_helper.from_array(np.array(3, np.int64))
    ends = (node("Constant", "", "t", value=three), node("Less", "i t", "g"), *COUNTING[1:])
    feeds: dict[str, Array] = {"p": np.array(True), "x": X}
    compare(counted(ends, trips="_", goes_on="p"), feeds, "p")
    compare(counted(ends, goes_on="p"), {"m": np.array(2, np.int64), **feeds}, "p", "m")


def test_what_a_loop_depends_on_must_be_known() -> None:
    (found,) = refusals(counted(COUNTING))
    assert "`Loop` `n_Loop` of (i64[], -, f32[2, 3]), opset 16: its trip count" in found.message
    by_data = (node("ReduceSum", "v", "r", keepdims=0), node("Cast", "r", "g", to=9), *COUNTING[1:])
    (found,) = refusals(counted(by_data), constants={"m": np.array(4, np.int64)})
    assert "its condition is computed when the model runs" in found.message
    assert found.help == "run a fixed number of times, and choose with Where"


def _failing(*condition: Any) -> bytes:  # noqa: ANN401
    """A loop whose body has an `If` without a form, and gives a condition of its own."""
    other = graph([node("NonZero", "v", "o")], [], [info("o", I64)])
    one = graph([node("Cast", "v", "o", to=7)], [], [info("o", I64)])
    chosen = [node("ReduceSum", "v", "r", keepdims=0), node("Cast", "r", "b", to=9),
              node("If", "b", "u", then_branch=one, else_branch=other)]  # fmt: skip
    return counted([*chosen, *condition, node("Cast", "u", "w", to=1), *COUNTING[3:]])


@pytest.mark.parametrize(
    ("condition", "is_by_data"),
    [
        ([node("Identity", "b", "g")], True),  # known to be data
        ([node("Cast", "u", "n", to=9), node("ReduceMin", "n", "g", keepdims=0)], True),  # by loss
        ([node("Identity", "c", "g")], False),  # the trip count decides
        ([node("Size", "u", "n"), node("Cast", "n", "g", to=9)], False),
    ],
)
def test_a_loop_that_data_ends_says_so_before_what_its_body_lacks(
    condition: list[Any], is_by_data: bool
) -> None:
    told = refusals(_failing(*condition), constants={"m": np.array(4, np.int64)})
    first = [found.message for found in told if "`Loop` `n_Loop` of (" in found.message]
    assert any("`NonZero`" in found.message for found in told)
    assert len(first) == is_by_data
    if is_by_data:
        assert first == [told[0].message]
        assert "its condition is computed when the model runs" in told[0].message
        assert told[0].help == "run a fixed number of times, and choose with Where"


def test_a_loop_without_end_is_refused() -> None:
    (found,) = refusals(counted(COUNTING, trips="_"))
    assert "it runs more than 1024 times" in found.message


def test_what_is_wrong_in_a_loop_is_said_once() -> None:
    body = (*COUNTING[:3], node("NoSuchOp", "w", "s"))
    (found,) = refusals(counted(body), constants={"m": np.array(9, np.int64)})
    assert "`NoSuchOp` `n_NoSuchOp`" in found.message
    assert "in `Loop` `n_Loop`" in found.message


def test_a_loop_may_change_the_shape_of_what_it_carries() -> None:
    body = (COUNTING[0], node("Concat", "v x", "w", axis=0))
    compare(counted(body, scans=0), {"m": np.array(3, np.int64), "x": X}, "m")


def test_what_a_loop_collects_must_have_one_shape() -> None:
    body = (COUNTING[0], node("Concat", "v x", "w", axis=0), node("Abs", "w", "s"))
    (found,) = refusals(counted(body), constants={"m": np.array(2, np.int64)})
    assert "tensors of several types: f32[4, 3] and f32[6, 3]" in found.message


def test_a_loop_does_not_hold_more_and_more_known_elements() -> None:
    wide = onnx.numpy_helper.from_array(np.array([1 << 20], np.int64))
    body = (*COUNTING[:3], node("Constant", "", "t", value=wide), node("ConstantOfShape", "t", "s"))
    (found,) = refusals(counted(body), constants={"m": np.array(1000, np.int64)})
    assert "it collects more than 16,777,216 known elements" in found.message


def scanned(axis: int = 0, out: int = 0, *, back: int = 0, turned: int = 0) -> bytes:
    body = graph([node("Add", "a b", "t"), node("Mul", "t b", "o")], [info("a"), info("b")],
                 [info("t"), info("o")])  # fmt: skip
    scan = node("Scan", "start x", "last all", body=body, num_scan_inputs=1,
                scan_input_axes=[axis], scan_output_axes=[out],
                scan_input_directions=[back], scan_output_directions=[turned])  # fmt: skip
    inputs = [info("start", F32, (X.shape[1 - axis],)), info("x", F32, X.shape)]
    return model(graph([scan], inputs, [info("last"), info("all")]))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("out", [0, 1, -1])
@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize("turned", [0, 1])
def test_a_scan_runs_along_any_axis_in_both_directions(
    axis: int, out: int, back: int, turned: int
) -> None:
    start = np.arange(X.shape[1 - axis], dtype=np.float32)
    compare(scanned(axis, out, back=back, turned=turned), {"start": start, "x": X})


def test_a_scan_of_opset_8_has_a_batch() -> None:
    body = graph([node("Add", "a b", "t"), node("Identity", "t", "o")],
                 [info("a", F32, (3,)), info("b", F32, (3,))],
                 [info("t", F32, (3,)), info("o", F32, (3,))])  # fmt: skip
    scan = node("Scan", "_ start x", "last all", body=body, num_scan_inputs=1)
    inputs = [info("start", F32, (2, 3)), info("x", F32, (2, 4, 3))]
    raw = model(graph([scan], inputs, [info("last"), info("all")]), opset=8)
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    last, every = evaluate(from_onnx(raw), {"start": X, "x": x})
    want = X[:, None] + np.cumsum(x, axis=1)
    np.testing.assert_array_equal(every, want)
    np.testing.assert_array_equal(last, want[:, -1])


def test_what_is_wrong_with_a_scan_is_said() -> None:
    (found,) = refusals(scanned().replace(b"num_scan_inputs", b"num_scan_inputz"))
    assert "it has no attribute `num_scan_inputz`" in found.message
    body = graph([node("Abs", "b", "o")], [info("b")], [info("o")])
    long = node("Scan", "x", "all", body=body, num_scan_inputs=1)
    (found,) = refusals(model(graph([long], [info("x", F32, (1025, 1))], [info("all")])))
    assert "it runs 1025 times, more than 1024" in found.message


@pytest.mark.parametrize(("rounds", "depth"), [(1000, 4), (100, 3), (60, 3), (400, 2)])
@in_time(1)
def test_loops_in_loops_are_refused_early(rounds: int, depth: int) -> None:
    """Rounds multiply: after the first round of all of them it is known what they come to."""
    body = graph([node("Identity", "v", "w"), node("Identity", "c", "g")],
                 [info("i", I64, ()), info("c", BOOL, ()), info("v")],
                 [info("g", BOOL), info("w")])  # fmt: skip
    for _ in range(depth - 1):
        inner = node("Loop", "m _ v", "w", body=body)
        body = graph([inner, node("Identity", "c", "g")],
                     [info("i", I64, ()), info("c", BOOL, ()), info("v")],
                     [info("g", BOOL), info("w")])  # fmt: skip
    outer = node("Loop", "m _ x", "y", body=body)
    held: dict[str, Array] = {"m": np.array(rounds, np.int64), "x": X}
    (found,) = refusals(model(graph([outer], [], [info("y")], **held)))
    assert "laid out flat, the model has more than 100,000 inner nodes" in found.message
    assert found.help == "run loops fewer times, or import a part of the model"


def test_loops_in_loops_within_the_limit_are_laid_out() -> None:
    """The inner one gives as many nodes in each round: the first is no measure of less."""
    carried = [info("i", I64, ()), info("c", BOOL, ()), info("v", F32, (2, 3))]
    made = [info("g", BOOL, ()), info("w", F32, (2, 3))]
    inner = graph([node("Add", "v v", "w"), node("Identity", "c", "g")], carried, made)
    nodes = [node("Loop", "m _ v", "w", body=inner), node("Identity", "c", "g")]
    outer = node("Loop", "m _ x", "y", body=graph(nodes, carried, made))
    raw = model(graph([outer], [info("x", F32, (2, 3))], [info("y")], m=np.array(4, np.int64)))
    compare(raw, {"x": X})


def _idle(shape: Sequence[int] | None, *behind: Any) -> bytes:  # noqa: ANN401
    """A loop that runs 0 times and collects `v`; its body declares a shape for it or does not."""
    body = graph(
        [node("Relu", "v", "w"), node("Identity", "c", "g"), node("Identity", "v", "s")],
        [info("i", I64, ()), info("c", BOOL, ()), info("v")],
        [info("g", BOOL), info("w"), info("s", F32, shape)],
    )
    loop = node("Loop", "m _ x", "y z", body=body)
    held: dict[str, Array] = {"m": np.array(0, np.int64)}
    outputs = [info("y"), info(behind[-1].output[0] if behind else "z")]
    return model(graph([loop, *behind], [info("x", F32, (2, 3))], outputs, **held))


def test_what_a_loop_that_never_runs_collects_is_known() -> None:
    """Its shape is that of one round; what follows is computed at import."""
    raw = _idle(None, node("Unsqueeze", "x a", "u"), node("Concat", "z u", "r", axis=0))
    proto = onnx.ModelProto.FromString(raw)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "a"))
    (y, r) = evaluate(from_onnx(proto.SerializeToString()), {"x": X})
    np.testing.assert_array_equal(y, X)
    np.testing.assert_array_equal(r, X[None])


def test_what_a_loop_that_never_runs_collects_is_no_output() -> None:
    (found,) = refusals(_idle(None))
    assert found.code == "ONX01"
    assert "output `z`: an operand has no elements" in found.message
    assert "no tensors without elements" in (found.help or "")


def test_a_loop_that_never_runs_and_says_nothing_of_its_result() -> None:
    proto = onnx.ModelProto.FromString(_idle(None))
    proto.graph.node[0].attribute[0].g.node[2].op_type = "NoSuch"
    (found,) = refusals(proto.SerializeToString())
    assert "it never runs, so that `s` has an axis of length 0" in found.message
    assert "Core IR has no axes of length 0" in (found.help or "")


@pytest.mark.parametrize("known", [(), ("c",)])
def test_a_condition_is_one_truth_value(known: tuple[str, ...]) -> None:
    chosen = node("If", "c", "y", then_branch=graph([node("Abs", "x", "t")], [], [info("t")]),
                  else_branch=graph([node("Neg", "x", "e")], [], [info("e")]))  # fmt: skip
    inputs = [info("x", F32, (2, 3))] + [info("c", BOOL, (2,))] * (not known)
    held = {"c": np.array([True, False])} if known else {}
    raw = model(graph([chosen], inputs, [info("y", F32, (2, 3))], **held))
    with pytest.raises(InputError, match="its condition has 2 elements, expected 1"):
        from_onnx(raw)
