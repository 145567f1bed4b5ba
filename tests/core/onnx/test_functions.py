"""Functions of models, and operations that ONNX defines by functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.onnx import walk
from nacre.core.onnx.control import scopes
from nacre.core.onnx.handlers.catalogue import handlers
from nacre.core.onnx.importer import from_onnx

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

Array = npt.NDArray[Any]
Proto = Any  # onnx has no types of its own
X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -4.0]], np.float32)
IMPORTS = (("", 18), ("mine", 1))


def node(op: str, inputs: str, outputs: str, domain: str = "", **attributes: object) -> Proto:
    given = [name if name != "_" else "" for name in inputs.split()]
    name = f"{op}_{outputs}"
    return onnx.helper.make_node(op, given, outputs.split(), name=name, domain=domain, **attributes)


def referring(made: Proto, name: str, to: str, kind: int) -> Proto:
    """The node with an attribute that holds what one of the call does."""
    attribute = made.attribute.add()
    attribute.name, attribute.ref_attr_name, attribute.type = name, to, kind
    return made


def function(
    name: str, inputs: str, outputs: str, nodes: Sequence[Any], attributes: Sequence[str] = (),
    defaults: Sequence[Any] = (),
) -> Proto:  # fmt: skip
    imports = [onnx.helper.make_opsetid(*entry) for entry in IMPORTS]
    return onnx.helper.make_function(
        "mine", name, inputs.split(), outputs.split(), nodes, imports, attributes, defaults
    )


def model(nodes: Sequence[Any], functions: Sequence[Any], outputs: str = "y") -> bytes:
    kind = onnx.TensorProto.FLOAT
    infos = [onnx.helper.make_tensor_value_info(name, kind, None) for name in outputs.split()]
    inputs = [onnx.helper.make_tensor_value_info("x", kind, X.shape)]
    graph = onnx.helper.make_graph(nodes, "g", inputs, infos)
    imports = [onnx.helper.make_opsetid(*entry) for entry in IMPORTS]
    made = onnx.helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=9)
    raw: bytes = made.SerializeToString()
    return raw


def compare(raw: bytes) -> None:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    want = ort.InferenceSession(raw, options).run(None, {"x": X})
    for got, other in zip(evaluate(from_onnx(raw), {"x": X}), want, strict=True):
        assert (got.dtype, got.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(got, other, rtol=1e-6)


def refusals(raw: bytes) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        from_onnx(raw)
    return caught.value.diagnostics


LEAK = function(
    "Leak", "a", "b",
    [referring(node("LeakyRelu", "a", "t"), "alpha", "slope", 1), node("Neg", "t", "b")],
    ["slope"],
)  # fmt: skip


@pytest.mark.parametrize("given", [{}, {"slope": 0.25}])
def test_a_function_takes_the_attributes_of_its_call(given: dict[str, float]) -> None:
    compare(model([node("Leak", "x", "y", "mine", **given)], [LEAK]))


@pytest.mark.parametrize("given", [{}, {"slope": 0.25}])
def test_an_attribute_may_have_a_default_in_the_function(given: dict[str, float]) -> None:
    default = onnx.helper.make_attribute("slope", 0.5)
    inner = referring(node("LeakyRelu", "a", "b"), "alpha", "slope", 1)
    leak = function("Leak", "a", "b", [inner], defaults=[default])
    compare(model([node("Leak", "x", "y", "mine", **given)], [leak]))


def test_functions_call_each_other_and_names_do_not_clash() -> None:
    twice = function("Twice", "x", "y", [node("Leak", "x", "t", "mine", slope=0.1),
                                         node("Leak", "t", "y", "mine", slope=2.0)])  # fmt: skip
    nodes = [node("Twice", "x", "t", "mine"), node("Leak", "t", "y", "mine")]
    compare(model(nodes, [LEAK, twice]))


def test_an_attribute_reaches_the_graphs_inside_a_function() -> None:
    kind = onnx.TensorProto.FLOAT
    info = [onnx.helper.make_tensor_value_info("r", kind, None)]
    inner = referring(node("LeakyRelu", "a", "r"), "alpha", "slope", 1)
    branches = {
        "then_branch": onnx.helper.make_graph([inner], "t", [], info),
        "else_branch": onnx.helper.make_graph([node("Abs", "a", "r")], "e", [], info),
    }
    zero = onnx.helper.make_tensor("zero", kind, (), [0.0])
    body = [node("Constant", "", "z", value=zero), node("ReduceSum", "a", "s", keepdims=0),
            node("Less", "s z", "c"), node("If", "c", "b", **branches)]  # fmt: skip
    choosing = function("Choosing", "a", "b", body, ["slope"])
    compare(model([node("Choosing", "x", "y", "mine", slope=0.5)], [choosing]))


def test_an_operand_that_a_call_leaves_out_is_left_out_inside() -> None:
    held = function("Held", "a low high", "b", [node("Clip", "a low high", "b")])
    raw = model([node("Held", "x", "y", "mine")], [held])
    np.testing.assert_array_equal(evaluate(from_onnx(raw), {"x": X})[0], X)


def test_a_function_does_not_see_the_graph_of_its_call() -> None:
    peeking = function("Peeking", "a", "b", [node("Add", "a x", "b")])
    (found,) = refusals(model([node("Peeking", "x", "y", "mine")], [peeking]))
    assert found.code == "ONX04"
    assert "`Add` `Add_b` uses `x`, which nothing before it defines" in found.message
    assert found.message.endswith("in `mine.Peeking` `Peeking_y`")


def test_an_attribute_outside_of_functions_refers_to_nothing() -> None:
    inner = referring(node("LeakyRelu", "x", "y"), "alpha", "slope", 1)
    (found,) = refusals(model([inner], []))
    assert "an attribute refers to one of a function" in found.message


def test_a_function_that_calls_itself_is_refused() -> None:
    endless = function("Endless", "a", "b", [node("Endless", "a", "b", "mine")])
    calls = [node("Endless", "x", "t", "mine"), node("Endless", "t", "y", "mine")]
    (found,) = refusals(model(calls, [endless]))
    assert found.code == "ONX04"
    assert found.message == "the function `mine.Endless` calls itself"
    assert "no recursion" in (found.help or "")


def test_a_function_that_calls_itself_by_way_of_others_is_refused() -> None:
    names = ["F", "G", "H"]
    ring = [function(name, "a", "b", [node(names[i - 2], "a", "b", "mine")])
            for i, name in enumerate(names)]  # fmt: skip
    outer = function("Outer", "a", "b", [node("G", "a", "b", "mine")])
    (found,) = refusals(model([node("Outer", "x", "y", "mine")], [outer, *ring]))
    assert (found.code, found.message) == (
        "ONX04", "the function `mine.G` calls itself by way of `mine.H`, `mine.F`"
    )  # fmt: skip


def test_a_call_of_itself_in_a_branch_is_found() -> None:
    info = [onnx.helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, None)]
    branches = {
        "then_branch": onnx.helper.make_graph([node("Deep", "a c", "r", "mine")], "t", [], info),
        "else_branch": onnx.helper.make_graph([node("Abs", "a", "r")], "e", [], info),
    }
    deep = function("Deep", "a c", "b", [node("If", "c", "b", **branches)])
    true = onnx.helper.make_tensor("true", onnx.TensorProto.BOOL, (), [True])
    nodes = [node("Constant", "", "c", value=true), node("Deep", "x c", "y", "mine")]
    (found,) = refusals(model(nodes, [deep]))
    assert (found.code, found.message) == ("ONX04", "the function `mine.Deep` calls itself")


def test_a_function_has_no_two_inputs_of_one_name() -> None:
    twice = function("Twice", "a a", "b", [node("Abs", "a", "b")])
    (found,) = refusals(model([node("Twice", "x x", "y", "mine")], [twice]))
    assert (found.code, "its function has two inputs `a`" in found.message) == ("ONX04", True)


def test_calls_that_double_at_each_level_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "MOST_NODES", 3000)
    chain = [function("F0", "a", "b", [node("Abs", "a", "b")])]
    for level in range(1, 40):
        call = f"F{level - 1}"
        body = [node(call, "a", "t", "mine"), node(call, "t", "b", "mine")]
        chain.append(function(f"F{level}", "a", "b", body))
    (found,) = refusals(model([node("F39", "x", "y", "mine")], chain))
    assert "more than 3,000 inner nodes" in found.message


def test_a_function_that_is_there_twice_and_too_many_operands_are_said() -> None:
    nodes = [node("Leak", "x x", "y", "mine")]
    found = refusals(model(nodes, [LEAK, LEAK]))
    assert [d.code for d in found] == ["ONX04", "ONX04"]
    assert "the function `Leak` is defined twice" in found[0].message
    assert "it has 2 operands, its function takes 1" in found[1].message


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Celu", {"alpha": 0.5}),  # by a fixed function
        ("ThresholdedRelu", {}),  # with an attribute whose default the schema has
        ("LogSoftmax", {"axis": 0}),  # by one that depends on the types of the operands
        ("MeanVarianceNormalization", {"axes": [1]}),
    ],
)
def test_an_operation_without_a_handler_is_brought_in_by_its_definition(
    op: str, attributes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {name: handler for name, handler in handlers().items() if name != op}
    monkeypatch.setattr(walk, "handlers", lambda: known)
    compare(model([node(op, "x", "y", **attributes)], []))


def test_what_is_missing_in_a_definition_is_said_with_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {n: h for n, h in handlers().items() if n not in ("LogSoftmax", "ReduceMax")}
    monkeypatch.setattr(walk, "handlers", lambda: known)
    (found,) = refusals(model([node("LogSoftmax", "x", "y")], []))
    assert "`ReduceMax` of (f32[2, 3]" in found.message
    assert "in `LogSoftmax` `LogSoftmax_y`: the operation is not known" in found.message
