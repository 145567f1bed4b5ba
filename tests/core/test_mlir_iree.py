"""Modules as MLIR, compiled and run by IREE on the processor: the same results as the evaluator.

Integers agree to the bit, and so do floats, but for `Exp` and `Log`, whose last bit is a matter of
the library, and products, which IREE sums with fused multiplications. It also takes subnormal
numbers as zero; no test has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import CoreSession, evaluate
from nacre.core.mlir.export import to_mlir
from nacre.core.module import Module, TensorType
from tests.core.modules import inputs_of, modules, same_bits
from tests.core.test_mlir import Case, cases_of, counter, module_of

pytestmark = pytest.mark.full  # with packages that CI does without


compiler = pytest.importorskip("iree.compiler.api")
runtime = pytest.importorskip("iree.runtime")

Array = npt.NDArray[Any]

FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-demote-f64-to-f32=false",
)
# IREE keeps two of these in a byte, and refuses tensors that do not fill theirs.
NOT_IN_IREE = {"i4", "u4"}
FIRST = ("i32", "i64", "f32", "f64")
FURTHER = tuple(name for name in GRAPH_TYPES if name not in {*FIRST, *NOT_IN_IREE})
PRODUCTS = {"Dot", "MatMul", "Conv2d"}
ULPS = {"Exp": 2, "Log": 2, **dict.fromkeys(PRODUCTS, 8)}


class Compiled:
    """A module that IREE has compiled."""

    def __init__(self, module: Module) -> None:
        context = runtime.SystemContext(config=_device())
        context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, _bytecode(module)))
        self._functions = context.modules.module
        self._module = module

    def run(self, arrays: Sequence[Array], function: str = "main") -> list[Array]:
        """The results of a call as plain arrays."""
        found = self._functions[function](*arrays)
        results = found if isinstance(found, tuple) else (found,)
        # Copied: a result may lie in the memory of an argument.
        return [result.to_host().copy() for result in results]

    def outputs(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs of the module in their element types."""
        types = self._module.output_types
        results = self.run(arrays)
        return [_typed(result, type_) for result, type_ in zip(results, types, strict=False)]


@cache
def _device() -> Any:  # noqa: ANN401 - a Config of IREE
    return runtime.Config("local-sync")


def _bytecode(module: Module) -> bytes:
    session = compiler.Session()
    session.set_flags(*FLAGS)
    invocation = session.invocation()
    text = to_mlir(module)
    source = compiler.Source.wrap_buffer(session, text.encode() + b"\0")
    assert invocation.parse_source(source), text
    assert invocation.execute(), text
    output = compiler.Output.open_membuffer()
    invocation.output_vm_bytecode(output)
    return bytes(output.map_memory())


def _typed(array: Array, type_: TensorType) -> Array:
    dtype = type_.element.dtype
    return array.view(dtype) if array.dtype.itemsize == dtype.itemsize else array.astype(dtype)


def same(found: Array, wanted: Array) -> bool:
    """Whether two arrays agree in every bit."""
    if wanted.dtype.isbuiltin == 1:
        return same_bits(found, wanted)
    return found.shape == wanted.shape and found.tobytes() == wanted.tobytes()


def ulps_apart(found: Array, wanted: Array) -> float:
    """How many steps from a number to the next lie between two arrays at most."""
    assert found.shape == wanted.shape
    exact = wanted.astype(np.float64)
    step = np.spacing(np.abs(wanted)).astype(np.float64)
    return float(np.max(np.abs(found.astype(np.float64) - exact) / step))


# Every opcode


def operands(module: Module, cases: Sequence[Case], seed: int) -> list[Array]:
    """Integers over the whole range, positive floats; rows that exist for indices."""
    random = np.random.default_rng(seed)
    arrays = []
    for name, type_ in module.input_types.items():
        case, operand = name.removeprefix("x").split(".")
        element = type_.element
        array: Array
        if cases[int(case)].indices and operand == "1":
            array = random.integers(0, 3, type_.shape)
        elif element.is_integer:
            low, high = int(element.lowest), int(element.highest)
            array = random.integers(low, high, type_.shape, np.int64, endpoint=True)
        else:
            array = random.uniform(0.1, 3, type_.shape)
        arrays.append(np.asarray(array).astype(element.dtype))
    return arrays


def check_every_case(dtype: str) -> None:
    cases = cases_of(dtype)
    module = module_of(dtype, cases)
    compiled = Compiled(module)
    for seed in range(3):
        arrays = operands(module, cases, seed)
        given = dict(zip(module.input_types, arrays, strict=True))
        results = compiled.outputs(arrays)
        for case, found, wanted in zip(
            cases, results, evaluate(module, given, ordered=True), strict=True
        ):
            is_close = dtype in FIRST and wanted.dtype.kind == "f" and case.opcode in ULPS
            if is_close:
                assert ulps_apart(found, wanted) <= ULPS[case.opcode], case
            else:
                assert same(found, wanted), case


@pytest.mark.parametrize("dtype", FIRST)
def test_every_case_gives_what_the_evaluator_gives(dtype: str) -> None:
    check_every_case(dtype)


@pytest.mark.full
@pytest.mark.parametrize("dtype", FURTHER)
def test_every_case_of_further_types_gives_what_the_evaluator_gives(dtype: str) -> None:
    check_every_case(dtype)


# Where it is easy to be wrong


SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_numbers_that_are_no_numbers_come_out_as_the_evaluator_has_them(dtype: str) -> None:
    build = Builder("core-v1")
    x, y = build.input("x", dtype, (len(SPECIAL),)), build.input("y", dtype, (len(SPECIAL), 1))
    exact = [build.add(opcode, x) for opcode in ("Relu", "Neg")]
    exact += [build.add("BinOp", x, y, op=op) for op in ("Add", "Sub", "Mul")]
    exact += [build.add(opcode, y, axes=(1,)) for opcode in ("Sum", "Mean")]
    close = [build.add(opcode, x) for opcode in ("Exp", "Log")]
    module = build.module(*exact, *close)
    array = np.array(SPECIAL, GRAPH_TYPES[dtype].dtype)
    given = {"x": array, "y": array[:, None]}
    found = Compiled(module).outputs(list(given.values()))
    wanted = evaluate(module, given)
    for at, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if at < len(exact):
            assert same(a, b), module.operations[module.outputs[at]]
        else:
            np.testing.assert_array_max_ulp(a, b, 2)
    assert found[0].tolist() == [0, np.inf, 0, 0, 0, 1, 0, 0.5, 0]
    assert not np.signbit(found[0]).any()


def test_products_of_small_integers_are_exact() -> None:
    build = Builder("core-v1")
    a, b = build.input("a", "f32", (2, 1, 5, 7)), build.input("b", "f32", (3, 7, 4))
    image, weights = build.input("i", "f32", (2, 9, 8, 3)), build.input("w", "f32", (3, 2, 3, 5))
    products = [build.add("MatMul", a, b)]
    products += [
        build.add("Conv2d", image, weights, strides=strides, padding="Same")
        for strides in ((1, 1), (2, 3), (4, 1))
    ]
    module = build.module(*products)
    random = np.random.default_rng(1)
    given = {
        name: random.integers(-9, 10, type_.shape).astype(np.float32)
        for name, type_ in module.input_types.items()
    }
    found = Compiled(module).outputs(list(given.values()))
    assert all(map(same, found, evaluate(module, given)))


def test_means_of_integers_are_exact_where_sums_overflow() -> None:
    extremes = [-(2**63), 2**63 - 1, -1, 0, 1, -(2**62), 2**62 + 1, -7]
    build = Builder("core-v1")
    x = build.input("x", "i64", (len(extremes), 5))
    module = build.module(build.add("Mean", x, axes=(1,)), build.add("Mean", x, axes=(0,)))
    rows = [[value] * (5 - at % 4) + [3] * (at % 4) for at, value in enumerate(extremes)]
    rows_found, columns_found = Compiled(module).outputs([np.array(rows, np.int64)])
    assert rows_found.tolist() == [_cut_mean(row) for row in rows]
    assert columns_found.tolist() == [_cut_mean(list(column)) for column in zip(*rows, strict=True)]


def _cut_mean(values: list[int]) -> int:
    total = sum(values)
    return total // len(values) if total >= 0 else -(-total // len(values))


@pytest.mark.parametrize("by", ["i32", "i64"])
def test_a_gather_outside_of_the_tensor_takes_the_nearest_row(by: str) -> None:
    build = Builder("core-v1")
    x, rows = build.input("x", "f32", (3, 2)), build.input("rows", by, (6,))
    compiled = Compiled(build.module(build.add("Gather", x, rows)))
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    lowest, highest = int(GRAPH_TYPES[by].lowest), int(GRAPH_TYPES[by].highest)
    indices = np.array([lowest, -1, 0, 2, 3, highest], GRAPH_TYPES[by].dtype)
    (found,) = compiled.outputs([table, indices])
    assert found.tolist() == table[[0, 0, 0, 2, 2, 2]].tolist()


def test_state_is_carried_by_the_caller() -> None:
    module = counter()
    compiled, session = Compiled(module), CoreSession(module)
    (kept,) = compiled.run([], "initial")
    for step in range(4):
        x = np.array([step, -step], np.int32)
        found, kept = compiled.run([x, kept])
        assert found.tolist() == session.run({"x": x})[0].tolist()
        assert kept.tolist() == session.state["kept"].tolist()


# Random modules


def has_subnormals(arrays: Sequence[Array]) -> bool:
    floats = [array for array in arrays if array.dtype.kind == "f"]
    return any(
        bool(((array != 0) & (np.abs(array) < np.finfo(array.dtype).tiny)).any())
        for array in floats
    )


def is_near(found: Array, wanted: Array, values: Sequence[Array]) -> bool:
    """Integers to the bit; floats by the largest of their kind, as small differences may grow."""
    if wanted.dtype.kind != "f":
        return same_bits(found, wanted)
    magnitudes = [
        np.abs(v[np.isfinite(v)]).max(initial=0) for v in values if v.dtype == wanted.dtype
    ]
    bound = float(np.finfo(wanted.dtype).eps) * 64
    return found.dtype == wanted.dtype and np.allclose(
        found, wanted, rtol=bound, atol=bound * float(max(magnitudes)), equal_nan=True
    )


@pytest.mark.full
@settings(max_examples=100)  # a compilation takes half a second
@given(module=modules(), seed=st.integers(1, 9))
def test_random_modules_give_what_the_evaluator_gives(module: Module, seed: int) -> None:
    inputs = inputs_of(module, seed)
    every = replace(module, outputs=tuple(op.value_id for op in module.operations))
    values = evaluate(every, inputs, ordered=True)
    assume(not has_subnormals(values))
    found = Compiled(module).outputs(list(inputs.values()))
    for result, value in zip(found, module.outputs, strict=True):
        assert is_near(result, values[module.operations.index(module.by_id[value])], values)
