"""Out to ONNX and back in: state is kept, shifts need no type that Core IR lacks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.onnx.importer import from_onnx
from nacre.core.onnx_export.export import to_onnx
from tests.core.onnx_export.running import assert_close, run

onnx = pytest.importorskip("onnx")


def two_states(dtype: str = "f32") -> Module:
    """A sum and a maximum of what has been given; one output is that of a state too."""
    build = Builder()
    x = build.input("x", dtype, (2,))
    total, most = (build.input(name, dtype, (2,)) for name in ("total", "most"))
    start = build.constant(np.array([3, 1], GRAPH_TYPES[dtype].dtype), dtype)
    next_total = build.add("BinOp", x, total, op="Add")
    next_most = build.add("BinOp", x, most, op="Max")
    build.state("total", next_total, start)
    build.state("most", next_most, start)
    return build.module(build.add("BinOp", next_total, next_most, op="Sub"), next_total)


@pytest.mark.parametrize("dtype", ["f32", "i32", "f64", "bf16", "u8"])
def test_state_comes_back(dtype: str, tmp_path: Path) -> None:
    module = two_states(dtype)
    to_onnx(module, tmp_path / "m.onnx")
    back = from_onnx(tmp_path / "m.onnx")
    assert list(back.input_types) == ["x", "total", "most"]
    assert {state.name for state in back.states} == {"total", "most"}
    assert back.output_names == module.output_names
    ours, theirs = module.session(), back.session()
    for number in (1, 5, 2):
        given_ = {"x": np.array([number, 2 * number], GRAPH_TYPES[dtype].dtype)}
        assert_close(theirs.run(given_), ours.run(given_))
        for name in ("total", "most"):
            assert theirs.state[name].tolist() == ours.state[name].tolist()
    theirs.reset()
    assert theirs.state["total"].tolist() == [3, 1]


def test_a_second_trip_changes_nothing(tmp_path: Path) -> None:
    to_onnx(two_states(), tmp_path / "a.onnx")
    to_onnx(from_onnx(tmp_path / "a.onnx"), tmp_path / "b.onnx")
    models = [onnx.load(tmp_path / name) for name in ("a.onnx", "b.onnx")]
    listed = [json.loads(model.metadata_props[0].value) for model in models]
    assert listed[0] == listed[1]
    assert [o.name for o in models[0].graph.output] == [o.name for o in models[1].graph.output]


def test_a_state_that_is_bound_is_none(tmp_path: Path) -> None:
    to_onnx(two_states(), tmp_path / "m.onnx")
    bound = np.array([7, 7], np.float32)
    back = from_onnx(tmp_path / "m.onnx", constants={"total": bound})
    assert [state.name for state in back.states] == ["most"]
    assert "total.next" in back.output_names
    x = np.array([1, 2], np.float32)
    found = dict(zip(back.output_names, evaluate(back, {"x": x}), strict=True))
    assert found["total.next"].tolist() == (x + bound).tolist()


ODD = [
    ("", "expected [{"),
    ("[", "expected [{"),
    ("[" * 100_000, "expected [{"),
    ("7", "has the entry `7`"),
    ("null", "has the entry `null`"),
    ('["total"]', "has the entry"),
    ('[{"input": "total"}]', "has the entry"),
    ('[{"input": ["total"], "output": "total.next"}]', "has the entry"),
    ('[{"input": "total", "output": "total.next", "more": 1}]', "has the entry"),
    ('[{"input": "none", "output": "total.next"}]', "`none` is no input"),
    ('[{"input": "x", "output": "total.next"}]', "`x` starts from nothing"),
    ('[{"input": "total", "output": "none"}]', "`none` of the state `total` is no output"),
    ('[{"input": "total", "output": "total.next"}, {"input": "total", "output": "most.next"}]',
     "`total` is listed twice"),
]  # fmt: skip


def with_property(tmp_path: Path, text: str) -> bytes:
    """The model of two states, with another list of them."""
    to_onnx(two_states(), tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx")
    del model.metadata_props[:]
    model.metadata_props.add(key="nacre.state", value=text)
    found: bytes = model.SerializeToString()
    return found


@pytest.mark.parametrize(("text", "told"), ODD)
def test_what_is_no_list_of_states_is_refused(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        from_onnx(with_property(tmp_path, text))
    (found,) = caught.value.diagnostics
    assert found.code == "ONX09"
    assert told in found.message
    assert len(found.message) < 1000


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | (
    st.dictionaries(st.sampled_from(["input", "output", "total"]), inner))))  # fmt: skip
def test_no_list_whatever_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory,
                                              value: object) -> None:  # fmt: skip
    raw = with_property(tmp_path_factory.mktemp("odd"), json.dumps(value))
    if value == []:
        assert not from_onnx(raw).states
        return
    with pytest.raises(InputError) as caught:
        from_onnx(raw)
    assert {found.code for found in caught.value.diagnostics} == {"ONX09"}


def test_a_state_of_another_type_than_its_next_value_is_refused() -> None:
    helper = onnx.helper
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
              for name, shape in (("s", (2,)), ("y", (4,)), ("z", (2,)))]  # fmt: skip
    start = onnx.numpy_helper.from_array(np.zeros(2, np.float32), "s")
    nodes = [helper.make_node("Concat", ["s", "s"], ["y"], axis=0),
             helper.make_node("Neg", ["s"], ["z"])]  # fmt: skip
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [start])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.metadata_props.add(key="nacre.state", value='[{"input": "s", "output": "y"}]')
    with pytest.raises(InputError) as caught:
        from_onnx(model.SerializeToString())
    (found,) = caught.value.diagnostics
    assert found.code == "ONX09"
    assert "`s`" in found.message
    model.metadata_props[0].value = '[{"input": "s", "output": "z"}, {"input": "s", "output": "y"}]'
    with pytest.raises(InputError, match="listed twice"):
        from_onnx(model.SerializeToString())


def test_a_model_of_nothing_but_states_is_refused() -> None:
    helper = onnx.helper
    values = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (2,)) for n in ("s", "y")]
    start = onnx.numpy_helper.from_array(np.zeros(2, np.float32), "s")
    graph = helper.make_graph([helper.make_node("Neg", ["s"], ["y"])], "g", values[:1], values[1:],
                              [start])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.metadata_props.add(key="nacre.state", value='[{"input": "s", "output": "y"}]')
    with pytest.raises(InputError, match="every output"):
        from_onnx(model.SerializeToString())


@pytest.mark.parametrize("dtype", ["i64", "i32", "i8", "u8", "u16", "i4", "u32"])
@pytest.mark.parametrize("op", ["ShiftLeft", "ShiftRight"])
def test_shifts_go_out_and_come_back(op: str, dtype: str, tmp_path: Path) -> None:
    """Against shifts of Python, in onnxruntime and in the module that is read back."""
    element = GRAPH_TYPES[dtype]
    low, high, bits = int(element.lowest), int(element.highest), element.bits
    numbers = [0, 1, high, low, high // 3, low // 5, 5]
    steps = [s for s in (0, 1, 2, bits - 1, bits, 62, 63, 64, 100) if s <= high]
    pairs = [(number, step) for number in numbers for step in steps]
    arrays = [np.array(column).astype(element.dtype) for column in zip(*pairs, strict=True)]
    build = Builder()
    # Four bits are no inputs of onnxruntime.
    outer = "i8" if dtype == "i4" else dtype
    a, b = (build.input(name, outer, (len(pairs),)) for name in ("a", "b"))
    shifted = build.add("BinOp", build.add("Cast", a, to=dtype), build.add("Cast", b, to=dtype),
                        op=op)  # fmt: skip
    module = build.module(build.add("Cast", shifted, to="i64"))
    feeds = {n: array.astype(GRAPH_TYPES[outer].dtype)
             for n, array in zip("ab", arrays, strict=True)}  # fmt: skip
    exact = [n << s if op == "ShiftLeft" else n >> s for n, s in pairs]
    wanted = [(value - low) % (1 << bits) + low for value in exact]
    assert run(module, feeds, tmp_path)[0].tolist() == wanted
    back = from_onnx(tmp_path / "model.onnx")
    assert evaluate(back, feeds)[0].tolist() == wanted
