"""docs/npm-backend.md compared with what the `npm` backend does."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.call import TensorType
from nacre.nem.run.machine.backends import BackendError, NpmBackend
from nacre.nem.run.memory.arrays import RegionView
from nacre.nem.spec.opcodes import OPCODES

PAGE = (Path(__file__).parents[3] / "docs" / "npm-backend.md").read_text(encoding="utf-8")
COMPUTED = [name for name in OPCODES if name not in ("transfer", "store", "compute")]


def rows() -> list[list[str]]:
    """The rows of the mapping table, cell by cell."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def mapping() -> dict[str, str]:
    """The function of every opcode, as the page gives it."""
    products, convolutions, others = rows()
    found = dict.fromkeys(words(products[0]), words(products[1])[0])
    found |= {opcode: words(convolutions[1])[0] + opcode for opcode in words(convolutions[0])}
    assert others[0] == "any other"
    prefix = words(others[1])[0]
    return {opcode: found.get(opcode, prefix + opcode) for opcode in COMPUTED}


def backend(monkeypatch: pytest.MonkeyPatch, **functions: Callable[..., Any]) -> NpmBackend:
    api = ModuleType("NpmPyTorchApi")
    for name, function in functions.items():
        setattr(api, name, function)
    monkeypatch.setitem(sys.modules, "NpmPyTorchApi", api)
    return NpmBackend()


def view(elem: str = "f16", shape: tuple[int, ...] = (2, 2)) -> RegionView:
    type_ = TensorType(ELEMENT_TYPES[elem], shape, None)
    return RegionView.of(np.zeros(shape, type_.dtype), type_)


def test_every_opcode_is_the_function_that_the_table_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for opcode, function in mapping().items():
        npm = backend(monkeypatch, **{function: lambda *_, **__: np.zeros((2, 2), np.float16)})
        supported = [name for name in COMPUTED if npm.supports(name)]
        assert supported == [name for name in COMPUTED if mapping()[name] == function], opcode


def test_operands_are_passed_as_the_table_says(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, dict[str, Any]]] = []

    def function(*operands: object, **named: object) -> np.ndarray[Any, Any]:
        seen.append((len(operands), named))
        return np.ones((2, 2), np.float16)

    for products in rows()[:2]:
        for opcode in words(products[0]):
            npm, out = backend(monkeypatch, **{mapping()[opcode]: function}), view()
            npm.execute(opcode, [view(), view()], [out], {"accum_type": "f32"})
            count, named = seen.pop()
            assert (count, named["bias"]) == (0, None)
            assert {*words(rows()[0][2])} - {"None"} <= named.keys()
            assert named["accum_type"] == "f32"
            assert ("precision" in named) == (mapping()[opcode] == "nmu_gemm")
            assert (out == 1).all()
    npm = backend(monkeypatch, cstl_add=function)
    npm.execute("add", [view(), view()], [view()], {})
    assert seen.pop() == (2, {})


def test_the_names_of_precisions_are_those_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    (listed,) = [line for line in PAGE.splitlines() if line.startswith("- `precision` follows")]
    seen: list[str] = []

    def nmu_gemm(data: Any, weights: Any, bias: Any, precision: str) -> Any:  # noqa: ANN401
        seen.append(precision)
        return np.zeros((2, 2), data.dtype)

    npm = backend(monkeypatch, nmu_gemm=nmu_gemm)
    for elem in ("f16", "bf16", "f32", "i8", "u8", "i16"):
        npm.execute("gemm", [view(elem), view(elem)], [view(elem)], {})
    assert words(listed)[1:7] == seen


def test_what_the_library_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    npm = backend(monkeypatch)
    assert not any(npm.supports(opcode) for opcode in COMPUTED)
    with pytest.raises(BackendError, match="has no function for `relu`"):
        npm.execute("relu", [view()], [view()], {})
