"""nacre as a backend in the sense of onnx, and what becomes of each case of its suite."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.backend.test
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.case.node import collect_testcases

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.onnx.handlers.elementwise import element_name
from nacre.core.onnx.importer import from_onnx
from nacre.core.unsupported import Unsupported

Array = np.ndarray[Any, Any]
FOLDER = Path(__file__).parent
# Cases that lie in files beside those that onnx makes.
KINDS = ("simple", "pytorch-converted", "pytorch-operator")
SMALL = 8  # elements of an operand that may say a shape, a scale or a limit


@dataclass(frozen=True)
class Case:
    """A model with inputs and the outputs that belong to them."""

    name: str
    model: Any
    sets: tuple[tuple[tuple[Any, ...], tuple[Any, ...]], ...]
    rtol: float
    atol: float

    @property
    def operations(self) -> frozenset[str]:
        """The operations of the model, those of graphs inside included."""
        return frozenset(_operations(self.model.graph))


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    kind: str  # passed, bound (some inputs), folded (all of them), refused, wrong or crashed
    reason: str = ""

    @property
    def is_passed(self) -> bool:
        """Whether outputs are right; inputs may have been bound."""
        return self.kind in ("passed", "bound", "folded")


class NacreRep(BackendRep):
    """A model, imported once its inputs are there: shapes are static, and those say them."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        self._raw = model.SerializeToString()
        held = {tensor.name for tensor in model.graph.initializer}
        self._names = [value.name for value in model.graph.input if value.name not in held]
        self.bound: frozenset[str] = frozenset()

    @property
    def is_folded(self) -> bool:
        """Whether all inputs were bound: then onnx itself computed the outputs, at import."""
        return bool(self._names) and self.bound == frozenset(self._names)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Array, ...]:  # noqa: ANN401
        """The outputs. Inputs become constants where nothing else does: small integers first."""
        given = dict(zip(self._names, inputs, strict=False))
        tensors = {n: a for n, a in given.items() if isinstance(a, np.ndarray)}
        refusal = InputError([])
        for names in _bindings(tensors):
            try:
                return self._run_bound(tensors, names)
            except InputError as error:
                refusal = error
        raise refusal

    def _run_bound(self, tensors: Mapping[str, Array], names: frozenset[str]) -> tuple[Array, ...]:
        shapes = {n: a.shape for n, a in tensors.items() if n not in names}
        constants = {n: tensors[n] for n in names}
        module = from_onnx(self._raw, shapes, constants=constants)
        found = evaluate(module, {n: tensors[n] for n in module.input_types})
        self.bound = names
        return tuple(found)


class NacreBackend(Backend):
    """Runs models by importing them and evaluating the module."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> NacreRep:  # noqa: ANN401
        return NacreRep(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


def _bindings(tensors: Mapping[str, Array]) -> Iterator[frozenset[str]]:
    """Which inputs to make constants: none, then more and more; the first is seldom a shape.

    Those that cannot be inputs always are: without elements, or of types that Core IR lacks.
    """
    empty = frozenset(n for n, a in tensors.items() if not a.size or not _is_core_array(a))
    whole = frozenset(n for n, a in tensors.items() if a.dtype.kind in "biu")
    small = frozenset(n for n, a in tensors.items() if a.size <= SMALL)
    first = frozenset(list(tensors)[:1])
    few = [(whole & small) - first, small - first, whole & small, whole, whole | small]
    tried: list[frozenset[str]] = []
    for names in (empty, *(empty | some for some in few)):
        if names not in tried:
            tried.append(names)
            yield names


def run_case(case: Case) -> Outcome:
    """Import, evaluate and compare."""
    rep = NacreBackend.prepare(case.model)
    kind = "passed"
    try:
        for inputs, outputs in case.sets:
            found = rep.run(inputs)
            if rep.bound:
                kind = "folded" if rep.is_folded else "bound"
            compare(found, outputs, case)
    except InputError as error:
        return Outcome("refused", error.diagnostics[0].message)
    except AssertionError as error:
        return Outcome("wrong", " ".join(str(error).split())[:120])
    except Exception as error:
        return Outcome("crashed", repr(error)[:120])
    return Outcome(kind)


def compare(found: Sequence[Array], outputs: Sequence[Any], case: Case) -> None:
    """Assert that outputs are those of the case.

    Its tolerances are for f32. Floats of fewer bits may differ by two steps of their own, and an
    element that is what is left of larger ones by a step of the largest.
    """
    assert len(found) == len(outputs)
    for own, other in zip(found, outputs, strict=True):
        assert own.dtype == other.dtype
        assert own.shape == other.shape
        if own.dtype.kind in "biu" or own.dtype.name in ("int4", "uint4"):
            assert np.array_equal(own, other), "integers differ"
            continue
        step = _step(own.dtype)
        wide, expected = own.astype(np.float64), other.astype(np.float64)
        largest = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
        rtol, atol = max(case.rtol, 2 * step), max(case.atol, step * largest)
        np.testing.assert_allclose(wide, expected, rtol, atol)


def _step(dtype: np.dtype[Any]) -> float:
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


@cache
def cases() -> tuple[Case, ...]:
    """Every case of the suite, in the order of names."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = [_made(case) for case in collect_testcases(None)]
    stored = [case for kind in KINDS for case in _stored(kind)]
    return tuple(sorted([*made, *stored], key=lambda case: case.name))


def _made(case: Any) -> Case:  # noqa: ANN401
    sets = tuple(
        (tuple(_value(v) for v in inputs), tuple(_value(v) for v in outputs))
        for inputs, outputs in case.data_sets
    )
    return Case(case.name, case.model, sets, case.rtol, case.atol)


def _value(value: Any) -> Any:  # noqa: ANN401
    """A tensor as an array; sequences and optional values as they are."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return value if isinstance(value, list | dict) or value is None else np.asarray(value)


def _stored(kind: str) -> Iterator[Case]:
    for folder in sorted((Path(onnx.backend.test.__file__).parent / "data" / kind).iterdir()):
        sets = tuple(
            (_files(data, "input"), _files(data, "output"))
            for data in sorted(folder.glob("test_data_set_*"))
        )
        if sets:
            yield Case(f"{kind}/{folder.name}", onnx.load(folder / "model.onnx"), sets, 1e-3, 1e-7)


def _files(folder: Path, kind: str) -> tuple[Any, ...]:
    paths = sorted(folder.glob(f"{kind}_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    return tuple(_tensor(path.read_bytes()) for path in paths)


def _tensor(raw: bytes) -> Any:  # noqa: ANN401
    """A tensor, or None for what is none."""
    try:
        return onnx.numpy_helper.to_array(onnx.load_tensor_from_string(raw))
    except Exception:  # sequences lie in files of the same name
        return None


def _operations(graph: Any) -> Iterator[str]:  # noqa: ANN401
    for node in graph.node:
        yield f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _operations(attribute.g)


@cache
def outcomes() -> Mapping[str, Outcome]:
    """What becomes of every case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models, not of ours
        return {case.name: run_case(case) for case in cases()}


@cache
def scope() -> frozenset[str]:
    """The operations that are in scope."""
    lines = (FOLDER / "scope.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def is_in_scope(case: Case) -> bool:
    """Whether the operations are in scope, and all that goes in and out is of Core IR's types."""
    if not case.operations <= scope():
        return False
    graph = case.model.graph
    return all(_is_core(value.type) for value in (*graph.input, *graph.output))


def _is_core_array(array: Array) -> bool:
    return any(element.dtype == array.dtype for element in GRAPH_TYPES.values())


def _is_core(type_: Any) -> bool:  # noqa: ANN401
    if not type_.HasField("tensor_type"):
        return False
    try:
        element_name(type_.tensor_type.elem_type)
    except Unsupported:
        return False
    return True
