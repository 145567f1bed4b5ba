from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.call import Array, Call, Fault, Run, TensorType
from nacre.nem.api.conformance import Row, check_backend, verdict_of
from nacre.nem.api.conformance_cases import Case, cases
from nacre.nem.api.conformance_limits import stated_ulps
from nacre.nem.api.conformance_types import tried_names, tried_opcodes, type_combinations
from nacre.nem.model.families import effective_by_opcode, standard_families
from nacre.nem.run.machine.backends import NumpyBackend
from nacre.nem.run.memory.arrays import RegionView
from nacre.nem.spec.opcodes import OPCODES

pytestmark = pytest.mark.sampled(2)  # together they take long

TRIED = tried_opcodes()
Attributes = dict[str, Any]


class Copy:
    """The reference behind the protocol; tests break it in one place each."""

    def supports(self, opcode: str) -> bool:
        return True

    def execute(
        self, opcode: str, inputs: list[RegionView], outputs: list[RegionView], attrs: Attributes
    ) -> object:
        NumpyBackend().execute(opcode, inputs, outputs, attrs)
        return None


class Mistaken(Copy):
    """Off by one, rounded the wrong way, raising, of the wrong shape, or lacking an opcode."""

    def supports(self, opcode: str) -> bool:
        return opcode != "gather"

    def execute(
        self, opcode: str, inputs: list[RegionView], outputs: list[RegionView], attrs: Attributes
    ) -> object:
        if opcode == "softmax":
            raise RuntimeError("no exponentials today")
        if opcode == "transpose":
            return np.zeros((9, 9), outputs[0].dtype)
        super().execute(opcode, inputs, outputs, attrs)
        (y, *_), elem = outputs, outputs[0].elem
        if opcode == "relu" and elem is ELEMENT_TYPES["i8"] and y.quant is None:
            y += np.int8(1)
        if opcode == "gemm" and elem is ELEMENT_TYPES["f16"]:
            y[...] = toward_zero([np.asarray(x).astype(np.float64) for x in inputs])
        return None


def toward_zero(operands: list[Array]) -> Array:
    """The exact product of matrices, cut to f16 instead of rounded."""
    with np.errstate(all="ignore"):
        exact = operands[0] @ operands[1] + (operands[2] if len(operands) > 2 else 0)
        near = exact.astype(np.float16)
        return np.where(np.abs(near) > np.abs(exact), np.nextafter(near, np.float16(0)), near)


class Ordered(NumpyBackend):
    """The reference with another order of sums and other roots of its functions."""

    def bind(self, opcode: str, call: Call) -> Run:
        return super().bind(opcode, replace(call, ordered=True))


def rows_of(backend: object, *opcodes: str) -> list[Row]:
    return list(check_backend(backend, opcodes or None))  # type: ignore[arg-type]


def kinds(rows: list[Row]) -> dict[tuple[str, str], str]:
    """What is not exact, by opcode and types."""
    return {(r.opcode, r.types): r.verdict.kind for r in rows if r.verdict.kind != "exact"}


@pytest.mark.full
def test_the_reference_agrees_with_itself_in_every_row() -> None:
    rows = rows_of(NumpyBackend())
    assert kinds(rows) == {}
    assert {row.opcode for row in rows} == set(tried_names())


@pytest.mark.full
def test_a_mistaken_backend_gets_exactly_the_verdicts_that_it_deserves() -> None:
    rows = rows_of(Mistaken())
    found = kinds(rows)
    floats = ("f16", "bf16", "f32")
    views = ("i8", "i16", "i32", *floats)
    gathers = [row.types for row in rows if row.opcode == "gather"]
    assert found == {
        ("relu", "i8"): "differs",
        ("gemm", "f16"): "differs",
        ("gemm", "f16 with bias"): "differs",
        **{("softmax", elem): "failed" for elem in floats},
        **{("transpose", elem): "failed" for elem in views},
        **{("gather", types): "not supported" for types in gathers},
    }


def test_a_verdict_says_what_was_found_where_and_in_which_case() -> None:
    rows = rows_of(Mistaken(), "softmax", "transpose", "relu", "gemm", "gather")
    verdicts = {(r.opcode, r.types): str(r.verdict) for r in rows}
    assert verdicts["softmax", "f16"] == (
        "failed: RuntimeError: no exponentials today; case [5, 5]; axis=1"
    )
    assert (
        "failed: ValueError: gave shape [9, 9], expected [5, 2, 3]" in (verdicts["transpose", "i8"])
    )
    first = next(iter(cases(OPCODES["relu"])))
    expected = max(int(first.inputs[0][0, 0]), 0)
    assert verdicts["relu", "i8"] == (
        f"differs: element [0, 0] is {expected + 1}, expected {expected}, and 98 more; case [9, 11]"
    )
    assert verdicts["gemm", "f16"].startswith("differs: element [")
    assert verdicts["gather", "f16, i32 -> f16"] == "not supported"


@pytest.mark.full
def test_another_order_of_sums_stays_within_the_limits() -> None:
    found = kinds(rows_of(Ordered()))
    assert set(found.values()) == {"within"}
    assert {opcode for opcode, _ in found} >= {"gemm", "conv2d", "exp", "softmax", "layernorm"}


def away(values: Array) -> Array:
    """To the nearest integer, halves away from zero."""
    rounded: Array = np.sign(values) * np.floor(np.abs(values) + 0.5)
    return rounded


def in_place_of(call: Call, elem: str) -> Call:
    """The same call with every type plain."""
    plain = [TensorType(ELEMENT_TYPES[elem], t.shape) for t in (*call.inputs, call.output) if t]
    return replace(call, inputs=tuple(plain[:-1]), outputs=(plain[-1],))


def saturating(opcode: str, call: Call) -> Run:
    return NumpyBackend().bind(
        opcode, replace(call, attributes={**call.attributes, "saturate": True})
    )


def last_of_equals(opcode: str, call: Call) -> Run:
    axis = call.attributes["axis"]

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        assert inputs[0] is not None
        turned = np.flip(inputs[0].astype(np.float64), axis).argmax(axis=axis)
        outputs[0][...] = (inputs[0].shape[axis] - 1 - turned).reshape(outputs[0].shape)
        return None

    return run


def halves_away_in_requantisation(opcode: str, call: Call) -> Run:
    raw = TensorType(ELEMENT_TYPES["i32"], call.output.shape)
    sums = NumpyBackend().bind(opcode, replace(call, outputs=(raw,)))
    x, w, y = (t.quant for t in (call.input(0), call.input(1), call.output))
    if x is None or w is None or y is None or w.axis is not None:
        return NumpyBackend().bind(opcode, call)
    scale, zero, elem = x.scale * w.scale / y.scale, y.zero_point, call.output.elem

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        acc = np.zeros(raw.shape, np.int32)
        sums(inputs, [acc])
        steps = away(acc.astype(np.float32) * scale) + zero
        outputs[0][...] = np.clip(steps, elem.lowest, elem.highest)
        return None

    return run


def halves_away_in_f16(opcode: str, call: Call) -> Run:
    wide = NumpyBackend().bind(opcode, in_place_of(call, "f32"))

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        exact = np.zeros(call.output.shape, np.float32)
        wide([x.astype(np.float32) for x in inputs if x is not None], [exact])
        near = exact.astype(np.float16)
        outer = np.nextafter(near, np.copysign(np.float16(np.inf), near))
        is_tie = np.abs(outer - exact) == np.abs(exact - near)
        outputs[0][...] = np.where(is_tie & np.isfinite(near), outer, near)
        return None

    return run


@pytest.mark.parametrize(
    ("opcode", "types", "mutation"),
    [
        *((name, "i8", saturating) for name in ("add", "sub", "mul", "neg", "abs", "pow", "div")),
        ("argmax", "f32 -> i32", last_of_equals),
        ("argmax", "i8", last_of_equals),
        *(
            (name, f"{types} per_tensor", halves_away_in_requantisation)
            for name in ("gemm", "conv1d", "conv2d", "conv3d", "depthwise_conv2d")
            for types in ("i8", "i8, i8, i32 -> i8", "i8, i4 -> i8")
        ),
        *((name, "f16", halves_away_in_f16) for name in ("gemm", "conv2d", "add", "mul")),
    ],
)
def test_small_mistakes_are_found(
    opcode: str, types: str, mutation: Callable[[str, Call], Run]
) -> None:
    class Mutant(NumpyBackend):
        def bind(self, opcode: str, call: Call) -> Run:
            return mutation(opcode, call)

    wrong = [c for c in cases(OPCODES[opcode]) if c.types == types]
    assert "differs" in {verdict_of(Mutant(), case).kind for case in wrong}


@pytest.mark.parametrize(("shift", "kind"), [(1, "within"), (5, "within"), (60, "differs")])
def test_the_limit_of_a_function_is_twice_its_stated_error(shift: int, kind: str) -> None:
    class Shifted(Copy):
        def execute(
            self,
            opcode: str,
            inputs: list[RegionView],
            outputs: list[RegionView],
            attrs: Attributes,
        ) -> object:
            super().execute(opcode, inputs, outputs, attrs)
            y = outputs[0]
            if y.dtype == np.float32:
                with np.errstate(all="ignore"):
                    moved = np.asarray(y) + shift * np.spacing(np.abs(np.asarray(y)))
                y[...] = np.where(np.isfinite(y) & (np.asarray(y) != 0), moved, y)
            return None

    (row,) = [row for row in rows_of(Shifted(), "exp") if row.types == "f32"]
    assert row.verdict.kind == kind
    if kind == "within":
        assert str(row.verdict) == f"within {shift} ulps (5 allowed)"


def test_types_that_a_backend_says_it_lacks_are_not_held_against_it() -> None:
    class NoBf16(Copy):
        def execute(
            self,
            opcode: str,
            inputs: list[RegionView],
            outputs: list[RegionView],
            attrs: Attributes,
        ) -> object:
            if outputs[0].elem is ELEMENT_TYPES["bf16"]:
                raise NotImplementedError("bf16 comes next year")
            return super().execute(opcode, inputs, outputs, attrs)

    rows = rows_of(NoBf16(), "add")
    assert kinds(rows) == {("add", "bf16"): "not supported"}
    assert all(row.verdict.is_good for row in rows)
    assert "not supported: bf16 comes next year" in {str(row.verdict) for row in rows}


def test_a_backend_that_writes_nothing_or_into_its_inputs_is_caught() -> None:
    class Idle(NumpyBackend):
        def bind(self, opcode: str, call: Call) -> Run:
            return lambda inputs, outputs: None

    class Careless(NumpyBackend):
        def bind(self, opcode: str, call: Call) -> Run:
            def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
                assert inputs[0] is not None
                inputs[0][...] = 0
                return None

            return run

    assert {row.verdict.kind for row in rows_of(Idle(), "reshape", "conv2d")} == {"differs"}
    assert {row.verdict.kind for row in rows_of(Careless(), "reshape")} == {"failed"}


def test_every_opcode_that_computes_has_cases() -> None:
    assert {o.name for o in TRIED} == OPCODES.keys() - {"transfer", "store", "compute"}
    assert [opcode.name for opcode in TRIED if not any(cases(opcode))] == []


def test_stores_that_quantise_are_compared_with_quantize() -> None:
    rows = list(check_backend(NumpyBackend(), ["store"]))
    assert {row.opcode for row in rows} == {"store"}
    assert [row.types for row in rows] == [
        f"{source} -> i8 {form}"
        for source in ("f16", "f32")
        for form in ("per_tensor", "per_channel")
    ]
    assert all(row.verdict.kind == "exact" and row.cases >= 5 for row in rows)


class QuantisesDown(Copy):
    """Quantises towards minus infinity, where the definition rounds to the nearest."""

    def execute(
        self, opcode: str, inputs: list[RegionView], outputs: list[RegionView], attrs: Attributes
    ) -> object:
        super().execute(opcode, inputs, outputs, attrs)
        if opcode == "quantize":
            outputs[0][...] = np.maximum(np.asarray(outputs[0]), -127) - 1
        return None


def test_a_backend_that_quantises_otherwise_than_stores_is_told_so() -> None:
    rows = list(check_backend(QuantisesDown(), ["store", "relu"]))
    kinds = {row.opcode: set() for row in rows}  # type: dict[str, set[str]]
    for row in rows:
        kinds[row.opcode].add(row.verdict.kind)
    assert kinds == {"relu": {"exact"}, "store": {"differs"}}


def test_every_variant_of_every_family_is_tried() -> None:
    families = standard_families().values()
    by_opcode = effective_by_opcode(i for f in families for i in f.instances.values())
    for name, instances in by_opcode.items():
        tried = [typing.elems for typing in type_combinations(OPCODES[name])]
        for instance in instances:
            wanted = {
                operand.name: elem
                for family_operand, elem in instance.operands.items()
                for operand in OPCODES[name].operands_bound_to(family_operand)
            }
            fixed = {n: e for n, e in wanted.items() if e in ELEMENT_TYPES}
            absent = {n for n, e in wanted.items() if e == "absent"}
            assert any(fixed.items() <= e.items() and not absent & e.keys() for e in tried), (
                instance.id
            )


@pytest.mark.parametrize("name", ["gemm", "conv2d", "depthwise_conv2d"])
def test_integer_products_are_tried_in_every_form_of_quantisation(name: str) -> None:
    forms = {t.form for t in type_combinations(OPCODES[name]) if t.elems["Y"] == "i8"}
    assert forms == {"per_tensor", "per_channel", "per_group", "raw_output"}
    grouped = [c for c in cases(OPCODES[name]) if c.types.endswith("per_group")]
    weights = [c.call.input(1).quant for c in grouped]
    assert any(quant is not None and quant.scale.size > 1 for quant in weights)


def test_casts_are_tried_between_all_pairs_of_types() -> None:
    pairs = {case.types for case in cases(OPCODES["cast"])}
    assert pairs == {f"{a} -> {b}" for a in ELEMENT_TYPES for b in ELEMENT_TYPES}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [opcode.name for opcode in TRIED])
def test_cases_are_odd_strided_and_go_to_the_ends_of_their_types(name: str) -> None:
    made = list(cases(OPCODES[name]))
    assert any(x.size == 1 for case in made for x in case.inputs)
    assert any(not x.flags.c_contiguous for case in made for x in case.inputs)
    reaching = {case.types for case in made if _reaches_an_end(case)}
    # Quantised sums stay small, so that f32 adds them exactly in any order.
    adds = OPCODES[name].category in ("pooling", "reduction")
    small = {case.types for case in made if adds and case.types.endswith("per_tensor")}
    assert {case.types for case in made} - small <= reaching
    assert len({(case.types, case.about) for case in made}) == len(made)


def _reaches_an_end(case: Case) -> bool:
    """Whether an input holds NaN, an infinity, or an end of its type."""
    for x, type_ in zip(case.inputs, case.call.inputs, strict=True):
        assert type_ is not None
        ends = x == x.dtype.type(type_.elem.highest)
        if not type_.elem.is_integer:
            ends = ~np.isfinite(x.astype(np.float64))
        if ends.any():
            return True
    return False


def test_cases_are_the_same_every_time() -> None:
    for one, other in zip(cases(OPCODES["gemm"]), cases(OPCODES["gemm"]), strict=True):
        for a, b in zip(one.inputs, other.inputs, strict=True):
            assert a.tobytes() == b.tobytes()


def test_only_floats_and_quantised_functions_have_room_for_error() -> None:
    for opcode in TRIED:
        for case in cases(opcode):
            ulps = stated_ulps(opcode.name, case.call)
            if case.call.output.elem.is_integer and case.call.output.quant is None:
                assert ulps == 0
            if opcode.category == "view" or opcode.name in ("add", "mul", "maxpool", "cast"):
                assert ulps == 0
