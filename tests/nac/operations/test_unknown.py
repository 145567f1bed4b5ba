"""Operations that nacre does not know: files keep them, tools show them, kernels run them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import Diagnostic, InputError
from nacre.compile.api import compile as compile_
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.opaque.arguments import Operand, decode_arguments, encode_arguments
from nacre.core.text.reader import parse
from nacre.core.verify import verify as verify_module
from nacre.nac.operations import registry
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.canonical import canonical
from nacre.nac.program.lift import lift
from nacre.nac.run.block_run import BlockRun
from nacre.nac.tools.genome import gene
from nacre.nac.tools.listing import listing
from nacre.nac.tools.opening import open_nac
from nacre.nac.tools.overview import overview
from nacre.nac.training.trainer import Trainer

Loose = Any
GATE = "mylib.gate.default"
SPLIT = "com.acme::Split"


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_plugins", {})
    yield
    registry._entry_points.cache_clear()


def opaque(builder: Builder, *values: int, **given: Loose) -> int:
    arguments = given.pop("arguments", tuple(Operand(at) for at in range(len(values))))
    said = {"schema": "x:T w:T beta:f", "call": 0, "dtype": "f32", "shape": (2, 3), **given}
    return builder.add("Opaque", *values, arguments=encode_arguments(arguments), **said)


def gated() -> Module:
    """relu(gate(x, x + 1, 0.5)), and one of two parts of it."""
    builder = Builder()
    x = builder.input("x", "f32", (2, 3))
    more = builder.add("BinOp", x, builder.constant(np.float32(1.0)), op="Add")
    gate = opaque(builder, x, more, name=GATE, arguments=(Operand(0), Operand(1), 0.5))
    relu = builder.add("Relu", gate)
    parts = [
        opaque(builder, relu, name=SPLIT, call=9, result=at, results=2, shape=(2, 1 + at),
               schema="x0:T * axis:i mode:s", arguments=(Operand(0), 1, "plain"))
        for at in range(2)
    ]  # fmt: skip
    return builder.module(builder.add("Neg", parts[1]), gate)


X = np.array([[1, -2, 3], [0.5, 0, -1]], np.float32)


def gate(x: Loose, w: Loose, beta: float) -> Loose:
    return x * w * beta


def split(x: Loose, *, axis: int, mode: str) -> Loose:
    assert (axis, mode) == (1, "plain")
    return [x[:, :1], x[:, 1:]]


def through_a_file(module: Module, path: Path) -> nac.NacModel:
    nac.save(nac.build(module), path)
    return nac.load(path)


def codes(findings: Sequence[Diagnostic]) -> list[str]:
    return [f"{d.severity} {d.code}" for d in findings]


def test_a_file_keeps_the_calls_with_their_arguments_and_types(tmp_path: Path) -> None:
    model = through_a_file(gated(), tmp_path / "m.nac")
    assert lift(model) == canonical(gated())
    assert verify_module(lift(model), "nacre-1") == []
    assert parse(str(lift(model))) == lift(model)
    assert nac.to_bytes(nac.build(model).file) == nac.to_bytes(model.file)
    opened = open_nac(tmp_path / "m.nac")
    text = listing(opened, with_schedule=True)
    assert f"{GATE}(v0, v2, 0.5)" in text
    assert f'{SPLIT}(v4, 1, "plain")' in text
    assert "; by name: (-, f32[2, 2])" in text, "nobody uses the first part"
    assert overview(opened).unknown == (SPLIT, GATE)
    assert [gene(name) for name in (GATE, SPLIT)] == ["mylib.gate", SPLIT]


def test_verify_warns_and_a_run_is_refused_until_kernels_are_there(tmp_path: Path) -> None:
    told: list[Diagnostic] = []
    nac.save(nac.build(gated(), warn=told.append), tmp_path / "m.nac")
    assert codes(told) == ["warning NAC40"] * 2
    findings = nac.verify(tmp_path / "m.nac")
    assert codes(findings) == ["warning NAC40"] * 2
    assert GATE in findings[0].message
    assert "register_operation" in str(findings[0].help)
    model = nac.load(tmp_path / "m.nac")
    nac.register_operation(GATE, gate)
    with pytest.raises(InputError) as refused:
        model.run({"x": X})
    assert codes(refused.value.diagnostics) == ["error NAC71"]
    assert SPLIT in refused.value.diagnostics[0].message
    nac.register_operation(SPLIT, split)
    expected = X * (X + 1) * np.float32(0.5)
    found = model.run({"x": X})
    np.testing.assert_array_equal(found[0], -np.maximum(expected, 0)[:, 1:])
    np.testing.assert_array_equal(found[1], expected)
    assert nac.verify(tmp_path / "m.nac") == []
    session = nac.load(tmp_path / "m.nac", memory_limit=4096).session()
    np.testing.assert_array_equal(session.run({"x": X})[1], expected)
    np.testing.assert_array_equal(session.run({"x": X})[1], expected)


def test_a_quantised_file_keeps_them_too(tmp_path: Path) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 4))
    w = builder.constant(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4))
    y = opaque(builder, x, w, name=GATE, shape=(2, 4), arguments=(Operand(0), Operand(1), 2.0))
    nac.save(nac.build(builder.module(y), "int8_channel"), tmp_path / "m.nac", "external")
    nac.register_operation(GATE, lambda x, w, beta: x @ w * beta)
    (found,) = nac.load(tmp_path / "m.nac").run({"x": np.ones((2, 4), np.float32)})
    exact = np.ones((2, 4)) @ np.linspace(-1, 1, 16).reshape(4, 4) * 2
    np.testing.assert_allclose(found, exact, atol=0.05)


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        (lambda x, w, beta: 1 / 0, "ZeroDivisionError"),
        (lambda x, w, beta: sys.exit(3), "SystemExit: 3"),
        (lambda x, w: x, "TypeError"),
        (lambda x, w, beta: x[:1], "gives float32[1, 3], expected float32[2, 3]"),
        (lambda x, w, beta: x > 0, "gives bool[2, 3], expected float32[2, 3]"),
        (lambda x, w, beta: x.astype(np.int64), "gives int64[2, 3], expected float32[2, 3]"),
        (lambda x, w, beta: x.astype(np.float64), "gives float64[2, 3], expected float32[2, 3]"),
        (lambda x, w, beta: x.astype(np.float16), "gives float16[2, 3], expected float32[2, 3]"),
        (lambda x, w, beta: x + 1j, "complex64"),
        (lambda x, w, beta: [x, w], "gives 2 results"),
        (lambda x, w, beta: "text", "gives a str"),
        (lambda x, w, beta: x.__setitem__(0, 1), "read-only"),
    ],
)
def test_what_a_kernel_does_wrong_is_a_finding(kernel: Loose, told: str) -> None:
    nac.register_operation(GATE, kernel)
    nac.register_operation(SPLIT, split)
    model = nac.build(gated())
    with pytest.raises(InputError) as refused:
        model.run({"x": X})
    (finding,) = refused.value.diagnostics
    assert finding.code == "NAC47"
    assert told in finding.message
    if "float32[2, 3]" in told and "float32[1" not in told:
        assert "astype('float32')" in str(finding.help)


def test_a_list_of_one_is_the_result_of_a_call_that_has_one() -> None:
    nac.register_operation(SPLIT, split)
    model = nac.build(gated())
    found = []
    for kernel in (
        lambda x, w, beta: x * 2,
        lambda x, w, beta: [x * 2],
        lambda x, w, beta: (x * 2,),
    ):
        nac.register_operation(GATE, kernel)
        found.append([array.tobytes() for array in model.run({"x": X})])
    assert found[0] == found[1] == found[2]


def test_numbers_of_python_have_the_width_that_is_expected() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 3))
    module = builder.module(opaque(builder, x, name=GATE, schema="x:T", shape=()))
    for value, told in (
        (0.5, None),
        (np.float64(0.5), "float64[]"),
        (1, "int64[]"),
        (True, "bool"),
    ):
        nac.register_operation(GATE, lambda x, value=value: value)
        if told is None:
            (found,) = nac.build(module).run({"x": X})
            assert found.dtype == np.float32
            assert float(found) == 0.5
            continue
        with pytest.raises(InputError, match="NAC47") as refused:
            nac.build(module).run({"x": X})
        assert told in str(refused.value)


def test_a_file_of_others_needs_no_table() -> None:
    assembler = Assembler()
    x = assembler.input("x")
    both = assembler.call("other.pair", x, 3, None, (1, 2))
    assembler.output(assembler.call("aten.neg.default", assembler.call("getitem", both, 1)))
    model = nac.load(nac.to_bytes(assembler.file()))
    seen: list[Loose] = []

    def pair(*given: Loose) -> Loose:
        seen.append(given[1:])
        return given[0], given[0] + given[1]

    nac.register_operation("other.pair", pair)
    (found,) = model.run({"x": X})
    np.testing.assert_array_equal(found, -(X + 3))
    assert seen == [(3, None, (1, 2))]
    with pytest.raises(InputError, match="type of its result") as refused:
        lift(model, {"x": gated().input_types["x"]})
    assert refused.value.diagnostics[0].code == "NAC49"
    nac.register_operation("other.pair", pair, shape=lambda x, *rest: [x.shape, (x.shape, "f4")])
    module = lift(model, {"x": gated().input_types["x"]})
    assert [op.opcode for op in module.operations] == ["Input", "Opaque", "Opaque", "Neg"]
    assert lift(nac.build(module)) == canonical(module)


def test_a_shape_that_contradicts_the_file_is_refused() -> None:
    nac.register_operation(SPLIT, split)
    for shape, told in (
        (lambda x, w, beta: (9, 9), "the file says float32[2, 3]"),
        (lambda x, w, beta: x, "expected a shape"),
        (lambda x, w, beta: (-1,), "which is no shape"),
        (lambda x, w, beta: ((1,), "word"), "element type that is none"),
        (lambda x: (2, 3), "TypeError"),
    ):
        nac.register_operation(GATE, gate, shape=shape)
        with pytest.raises(InputError, match="NAC47") as refused:
            nac.build(gated()).run({"x": X})
        assert told in str(refused.value)


@pytest.mark.parametrize(
    ("name", "kernel", "told"),
    [
        ("", gate, "1 to 255 bytes"),
        ("a" * 256, gate, "1 to 255 bytes"),
        (3, gate, "1 to 255 bytes"),
        (GATE, "gate", "expected a function"),
        ("aten.relu.default", gate, "nacre itself"),
        ("aten.relu_.default", gate, "nacre itself"),
        ("nac.add", gate, "nacre itself"),
        ("core.Relu", gate, "nacre itself"),
    ],
)
def test_what_is_no_operation_is_refused(name: Loose, kernel: Loose, told: str) -> None:
    with pytest.raises(InputError, match=told) as refused:
        nac.register_operation(name, kernel)
    assert refused.value.diagnostics[0].code == "NAC72"


class Point:
    """An entry point as `importlib.metadata` has them."""

    value = "plugin:gate"

    def __init__(self, found: Loose) -> None:
        self.name = GATE
        self._found = found
        self.loads = 0

    def load(self) -> Loose:
        self.loads += 1
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


def plugin(monkeypatch: pytest.MonkeyPatch, found: Loose) -> Point:
    point = Point(found)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    registry._entry_points.cache_clear()
    nac.register_operation(SPLIT, split)
    return point


@pytest.mark.parametrize("found", [gate, nac.Operation(gate, lambda x, w, beta: x.shape)])
def test_a_plugin_is_loaded_when_it_is_asked_for(
    found: Loose, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = plugin(monkeypatch, found)
    model = nac.build(gated())
    assert point.loads == 0
    np.testing.assert_array_equal(model.run({"x": X})[1], X * (X + 1) * np.float32(0.5))
    model.run({"x": X})
    assert point.loads == 1


@pytest.mark.parametrize(
    ("found", "told"),
    [(ImportError("no module named x"), "no module named x"), (3, "it is a int")],
)
def test_a_broken_plugin_is_a_code(
    found: Loose, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(monkeypatch, found)
    model = nac.build(gated())
    with pytest.raises(InputError, match=told) as refused:
        model.run({"x": X})
    assert codes(refused.value.diagnostics) == ["error NAC72"]
    assert codes(nac.verify(nac.to_bytes(model.file))) == ["error NAC72"]


def test_nothing_else_of_nacre_computes_them() -> None:
    with pytest.raises(InputError, match="by its name alone") as refused:
        evaluate(gated(), {"x": X})
    assert refused.value.diagnostics[0].code == "EVL04"
    with pytest.raises(InputError, match="by its name alone") as refused:
        compile_(gated(), "npm4k")
    assert codes(refused.value.diagnostics) == ["error CMP01"] * 2
    with pytest.raises(InputError, match="instruction 3"):
        compile_(nac.build(gated()), "npm4k")


def test_a_choice_does_not_hide_a_call() -> None:
    builder = Builder()
    x, b = builder.input("x", "f32", (2, 3)), builder.input("b", "bool", ())
    y = opaque(builder, x, x, name=GATE, arguments=(Operand(0), Operand(1), 1.0))
    module = builder.module(builder.add("Where", b, builder.add("Neg", y), x))
    assert lift(nac.build(module)) == canonical(module)
    nac.register_operation(GATE, gate)
    (found,) = nac.build(module).run({"x": X, "b": np.array(True)})
    np.testing.assert_array_equal(found, -X * X)


def broken_table(text: str) -> list[Diagnostic]:
    file = nac.build(gated()).file
    kept = {r.name: bytes(r.data) for r in file.resources}
    kept["nacre.operations.json"] = text.encode()
    resources = tuple(type(file.resources[0])(name, data) for name, data in kept.items())
    made = nac.NacFile(file.header, {**file.sections, "RSRC": resources})
    return nac.verify(nac.to_bytes(made))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "malformed"),
        ('{"calls": {"99": {"schema": "", "results": [null]}}}', "no call"),
        ('{"calls": {"0": {"schema": "", "results": [null]}}}', "no call"),
        ('{"calls": {"3": {"schema": "x", "results": [null]}}}', "no argument of a schema"),
        ('{"calls": {"3": {"schema": "x:T x:T", "results": [null]}}}', "one name"),
        ('{"calls": {"3": {"schema": "x:T* y:T*", "results": [null]}}}', "two lists"),
        ('{"calls": {"3": {"schema": "x:T=[", "results": [null]}}}', "no JSON"),
        ('{"calls": {"3": {"schema": "* *", "results": [null]}}}', "one `*`"),
        ('{"calls": {"3": {"schema": "x:T", "results": []}}}', "0 results"),
        ('{"calls": {"3": {"schema": "x:T", "results": [null, null]}}}', "no list"),
        ('{"calls": {"3": {"schema": "x:T", "results": [{"dtype": "f3", "shape": []}]}}}', "`f3`"),
        ('{"calls": {"3": {"schema": "x:T", "results": [{"dtype": "f32", "shape": [0]}]}}}',
         "none of a tensor"),
        ('{"calls": {"3": {"schema": "x:T", "results": [{"dtype": "f32", "shape": '
         '[99999999, 99999999]}]}}}', "too many"),
    ],
)  # fmt: skip
def test_a_table_that_is_wrong(text: str, told: str) -> None:
    findings = [d for d in broken_table(text) if d.code == "NAC43"]
    assert findings
    assert told in findings[0].message


def test_arguments_as_a_text() -> None:
    given = (Operand(0), Operand(1, True), None, True, 3, 0.5, float("-inf"), "a", (1, Operand(2)))
    assert decode_arguments(encode_arguments(given)) == given
    for text in ("", "3", "[[[1]]]", '[{"operand": true}]', '[{"float": "9"}]', '[{"x": 1}]'):
        with pytest.raises(ValueError, match="argument"):
            decode_arguments(text)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": ""}, "no name"),
        ({"arguments": (Operand(1),)}, "the operands [1], expected"),
        ({"result": 2, "results": 2}, "result 2 of 2"),
        ({"call": -1}, "call -1"),
        ({"complex": True}, "last axis of 2"),
    ],
)
def test_an_operation_that_makes_no_sense(given: dict[str, Loose], told: str) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 3))
    with pytest.raises(InputError) as refused:
        opaque(builder, x, **{"name": GATE, "schema": "x:T", **given})
    assert refused.value.diagnostics[0].code == "NCR01"
    assert told in str(refused.value)


@pytest.mark.parametrize(("number", "is_held"), [(2**63 - 1, True), (2**63, False)])
def test_integers_do_not_wrap(number: int, is_held: bool) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 3))
    y = opaque(builder, x, name=GATE, schema="x:T", dtype="i64", shape=())
    nac.register_operation(GATE, lambda x: number)
    model = nac.build(builder.module(y))
    if is_held:
        assert model.run({"x": X})[0].tolist() == number
        return
    with pytest.raises(InputError, match=r"NAC47.*gives 9223372036854775808, which int64 does not"):
        model.run({"x": X})


def test_a_block_with_a_call_that_has_no_kernel_names_it() -> None:
    model = nac.build(gated())
    run = BlockRun(model)
    run.set_result(0, X)
    run.run(0, 2)
    with pytest.raises(InputError) as refused:
        run.run(3, len(model.program) - 1)
    assert {d.code for d in refused.value.diagnostics} == {"NAC71"}
    assert GATE in refused.value.diagnostics[0].message


def test_such_a_model_is_not_trained() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 3))
    w = builder.constant(np.ones((2, 3), np.float32))
    y = opaque(builder, x, w, name=GATE, arguments=(Operand(0), Operand(1), 0.5))
    trainer = Trainer(nac.build(builder.module(y)))
    with pytest.raises(InputError) as refused:
        trainer.step({"x": X}, [X], 0.1, loss="mse", parameters=list(trainer.weights) or ["c1"])
    assert codes(refused.value.diagnostics) == ["error NAC55"]
    assert "Opaque" in refused.value.diagnostics[0].message
