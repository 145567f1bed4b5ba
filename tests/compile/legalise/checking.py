"""A legal module is held to the module that it was made from."""

from __future__ import annotations

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.legalise.contract import is_legal
from nacre.compile.legalise.layout import layout
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.stage import legalise
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.verify import verify
from tests.compile.legalise.samples import Array, feeds_of

MOST = {"f32": 1e-5, "f16": 1e-2}


def legal_of(module: Module, precision: str = "f32") -> Legal:
    """The module through both stages; it is valid, and keeps the contract."""
    legal = layout(legalise(module, precision))
    assert not [d for d in verify(legal.module, "nacre-1") if d.severity == "error"]
    assert is_legal(legal.module, legal.escaped) == []
    assert all(op.value_id in legal.origins for op in legal.module.operations)
    return legal


def run(module: Module, feeds: dict[str, Array]) -> list[Array]:
    """The outputs for inputs of whatever type the module wants."""
    types = module.input_types
    given = {
        name: array.astype(GRAPH_TYPES[types[name].dtype].dtype) for name, array in feeds.items()
    }
    return list(evaluate(module, given))


def error(found: Array, expected: Array) -> float:
    """The largest difference, as a share of the largest element or of 1."""
    a, b = found.astype(np.float64), expected.astype(np.float64)
    assert a.shape == b.shape
    assert (np.isnan(a) == np.isnan(b)).all()
    same = (a == b) | np.isnan(b)
    difference = np.subtract(a, b, where=~same, out=np.zeros_like(a))  # not of two infinities
    return float(np.max(np.abs(difference), initial=0.0)) / max(
        1.0, float(np.max(np.abs(b), where=np.isfinite(b), initial=0.0))
    )


def require_same(
    module: Module, precision: str = "f32", feeds: dict[str, Array] | None = None
) -> Legal:
    """Both modules give the same values, within the rounding of the precision."""
    legal = legal_of(module, precision)
    given = feeds_of(module) if feeds is None else feeds
    for found, expected in zip(run(legal.module, given), run(module, given), strict=True):
        assert error(found, expected) <= MOST[precision]
    return legal


def opcodes(legal: Legal) -> set[str]:
    """What a legal module computes with."""
    return {
        op.opcode for op in legal.module.operations if not op.opcode.startswith(("Const", "Input"))
    }
