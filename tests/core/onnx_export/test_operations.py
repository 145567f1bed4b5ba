"""Every operation as ONNX: onnxruntime computes what the evaluator does, and so does the way back.

Integers agree to the bit. Floats agree within 8 ulps, or within the part of the largest element
that `PARTS` says: sums are added in another order, and functions come from another library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.base.lazy import load_all
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.onnx.importer import from_onnx
from nacre.core.onnx_export.writer import FORMS
from nacre.core.ops import OPS
from tests.core.gradients.gradient_cases import CASES, Case
from tests.core.onnx_export.running import Array, assert_close, attempt, attempt_each, plain, run
from tests.core.uses import USES, UseOf, inputs_of, module_of

pytestmark = pytest.mark.sampled(2)  # together they take long

ULPS = 8
PARTS = {"f64": 1e-14, "f32": 1e-6, "f16": 1e-3, "bf16": 8e-3, "f8e4m3": 0.13, "f8e5m2": 0.25}

FIRST = [
    UseOf("Sum", "f32[2,3]", "f32[2]", {"axes": (1,)}),
    UseOf("Mean", "f32[2,3,4]", "f32[3]", {"axes": (0, 2)}),
    UseOf("Relu", "f32[5]", "f32[5]", {}),
    UseOf("Neg", "f32[5]", "f32[5]", {}),
    UseOf("Exp", "f32[5]", "f32[5]", {}),
    UseOf("Log", "f32[5]", "f32[5]", {}),
    UseOf("Dot", "f32[3] f32[3]", "f32[]", {}),
    UseOf("MatMul", "f32[2,3] f32[3,2]", "f32[2,2]", {}),
    UseOf("Conv2d", "f32[1,4,4,2] f32[3,3,2,2]", "f32[1,2,4,2]",
          {"strides": (2, 1), "padding": "Same"}),
    UseOf("Reshape", "f32[2,3]", "f32[3,2]", {"new_shape": (3, -1)}),
    UseOf("Transpose", "f32[2,3]", "f32[3,2]", {"permutation": (1, 0)}),
    UseOf("ExpandDims", "f32[2,3]", "f32[1,2,1,3]", {"axes": (0, 2)}),
    UseOf("Squeeze", "f32[1,3,1]", "f32[3]", {"axes": (0, 2)}),
    UseOf("Index", "f32[2,3]", "f32[]", {"indices": (1, 2)}),
    UseOf("Slice", "f32[4,3]", "f32[2,2]", {"starts": (1, 0), "ends": (4, 2), "steps": (2, 1)}),
    UseOf("Gather", "f32[4,3] i64[2]", "f32[2,3]", {}),
    UseOf("BinOp", "f32[2,3] f32[3]", "f32[2,3]", {"op": "Add"}),
]  # fmt: skip


def every_word() -> Iterator[UseOf]:
    """Every use, with every function that an operation has."""
    for use in (*FIRST, *USES):
        attribute = OPS[use.opcode].attribute("op")
        for word in attribute.choices if attribute is not None else ():
            yield UseOf(use.opcode, use.types, "", {**use.attributes, "op": word})
        if attribute is None:
            yield use


EVERY = list(every_word())
FLOATS_ONLY = tuple(f"Unary.{name}" for name in ("Erf", "Asin", "Acos", "Atan", "Sinh", "Cosh",
                                                 "Asinh", "Acosh", "Atanh"))  # fmt: skip
# What is refused, by operation: the element types.
REFUSED = {
    **{name: {"f64"} for name in FLOATS_ONLY},
    "BinOp.Pow": {name for name, e in GRAPH_TYPES.items() if e.kind in ("signed", "unsigned")},
    "ScatterElements": {"bool"},
    "Resize": {"i64"},
    **{name: {"bool"} for name in ("Sum", "Mean", "Dot", "MatMul", "Conv2d")},
}


def title(use: UseOf) -> str:
    return f"{use.opcode}.{use.attributes['op']}" if "op" in use.attributes else use.opcode


def test_every_operation_has_a_form() -> None:
    made_of_no_node = {name for name, op in OPS.items() if "constant" in op.traits} | {"Input"}
    load_all("nacre.core.onnx_export.forms")
    forms = set(FORMS.registered)
    assert forms == set(OPS) - made_of_no_node
    assert {use.opcode for use in EVERY} == forms - {"Opaque"}, "which has none, and says so"


@pytest.mark.parametrize("use", [*FIRST, *USES], ids=title)
def test_onnxruntime_agrees_and_the_model_reads_back(use: UseOf, tmp_path: Path) -> None:
    module = plain(module_of(use))
    inputs = inputs_of(module)
    expected = evaluate(module, inputs)
    # Fused, the runtime rounds sums of quantised tensors in another place on some processors.
    is_plain = use.opcode.startswith("Q")
    assert_close(run(module, inputs, tmp_path, is_plain), expected, ULPS, PARTS["f32"])
    again = from_onnx(tmp_path / "model.onnx")
    assert again.input_types == module.input_types
    assert_close(evaluate(again, inputs), expected, ULPS, PARTS["f32"])


def in_type(use: UseOf, dtype: str) -> Module | None:
    """The use with another element type, where it has one such."""
    given, spec = use.types.split(), OPS[use.opcode]
    attributes = dict(use.attributes)
    if use.opcode == "Iota":
        attributes["dtype"] = dtype
    at = 1 if use.opcode == "Where" else 0
    first = given[at].partition("[")[0] if given else ""
    types = [
        dtype + text.removeprefix(first)
        if text.startswith(f"{first}[")
        and (i == at or spec.accepted_types(i) in ("same", "any", "byte"))
        else text
        for i, text in enumerate(given)
    ]
    if "Einsum" in use.opcode:
        types = [dtype + text.removeprefix(first) for text in given]
    if "to" in attributes and use.opcode != "Cast" and GRAPH_TYPES[dtype].is_integer:
        attributes["to"] = dtype
    try:
        return module_of(UseOf(use.opcode, " ".join(types), "", attributes))
    except (InputError, ValueError):
        return None


def values_of(use: UseOf, module: Module, seed: int) -> dict[str, Array]:
    """Numbers of all magnitudes that a type has; small ones where others would fail the run."""
    found: dict[str, Array] = {}
    spec, word = OPS[use.opcode], use.attributes.get("op")
    for at, (name, type_) in enumerate(module.input_types.items()):
        random, element = np.random.default_rng(seed * 10 + at), type_.element
        made: Array
        if spec.accepted_types(at, word) == "index":
            made = random.integers(0, 2, type_.shape)
        elif element.kind == "float":
            made = random.normal(0, 3, type_.shape) if seed else random.integers(1, 5, type_.shape)
        else:
            ends = (int(element.lowest), int(element.highest)) if seed else (1, 4)
            ends = (0, 6) if at and word in ("ShiftLeft", "ShiftRight", "Pow") else ends
            made = random.integers(*ends, type_.shape, endpoint=True, dtype=np.int64)
        if at and word in ("Div", "Mod", "Rem"):
            made = np.where(made == 0, 1, made)
        found[name] = np.asarray(made).astype(element.dtype)
    return found


@pytest.mark.sampled(8)
@pytest.mark.parametrize("use", EVERY, ids=title)
def test_every_element_type_agrees_or_is_refused(use: UseOf, tmp_path: Path) -> None:
    refused, seen = set(), set()
    for dtype in GRAPH_TYPES:
        original = in_type(use, dtype)
        if original is None:
            continue
        module = plain(original)
        cases, expected = [], []
        for seed in (0, 1):
            # In the types of the operation: what NumPy lacks has fewer numbers than its stand-in.
            inputs = {name: array.astype(module.input_types[name].element.dtype)
                      for name, array in values_of(use, original, seed).items()}  # fmt: skip
            with suppress(InputError):  # an error of the run
                expected.append(evaluate(module, inputs))
                cases.append(inputs)
        if not cases:
            continue
        found, reasons = attempt_each(module, cases, tmp_path)
        if reasons:
            refused.add(dtype)
            continue
        for outputs, wanted in zip(found, expected, strict=True):
            assert_close(outputs, wanted, ULPS, PARTS.get(dtype, PARTS["f32"]))
        seen.add(dtype)
    assert refused == REFUSED.get(title(use), set())
    assert seen or refused


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_cases_of_gradients_agree_both_ways(case: Case, dtype: str, tmp_path: Path) -> None:
    module = case.module(weighted=False, dtype=dtype)
    inputs = {n: a.astype(GRAPH_TYPES[dtype].dtype) for n, a in case.values().items()}
    found, reasons = attempt(module, inputs, tmp_path)
    if reasons:
        assert dtype == "f64"
        assert case.name.split(" ")[0] in (*FLOATS_ONLY, "Gelu")
        assert "onnxruntime has no" in reasons[0]
        return
    expected = evaluate(module, inputs)
    assert_close(found, expected, ULPS, PARTS[dtype])
    again = from_onnx(tmp_path / "model.onnx")
    assert_close(evaluate(again, inputs), expected, ULPS, PARTS[dtype])
