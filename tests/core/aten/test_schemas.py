"""Schemas of calls: those of PyTorch, and what their notation says."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.core.aten.catalogue import handlers
from nacre.core.aten.schemas import Parameter, parse, schemas


def test_every_schema_has_a_handler() -> None:
    assert set(handlers()) == set(schemas())


def test_a_schema_is_read_from_its_notation() -> None:
    schema = parse("x.default", "self:T indices:T?* dim:I=[1,2] eps:f? | layout:k?")
    assert schema.parameters == (
        Parameter("self", "T"),
        Parameter("indices", "T", is_list=True, is_optional=True),
        Parameter("dim", "I", has_default=True, default=(1, 2)),
        Parameter("eps", "f", is_optional=True, has_default=True),
        Parameter("layout", "k", is_optional=True, has_default=True, is_storage=True),
    )
    assert schema.written == schema.parameters[:-1]


KINDS = {
    "Tensor": "T", "int": "i", "SymInt": "i", "float": "f", "number": "n", "bool": "b", "str": "s",
    "List[Tensor]": "T", "List[Optional[Tensor]]": "T", "List[int]": "I", "List[SymInt]": "I",
    "List[float]": "F",
}  # fmt: skip
STORAGE = {"Layout", "Device", "MemoryFormat", "Generator"}


def _kind(argument: Any) -> str:  # noqa: ANN401 - of torch
    real = str(argument.real_type)
    if "ScalarType" in real:
        return "d"
    if any(word in real for word in STORAGE):
        return "k"
    plain = str(argument.type)
    return KINDS[plain[len("Optional[") : -1] if plain.startswith("Optional[") else plain]


@pytest.mark.parametrize("call", sorted(schemas()))
def test_a_schema_is_pytorchs(call: str) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.ao.quantization.fx._decomposed")  # it registers its calls
    *space, name, overload = call.split(".")
    target = getattr(getattr(getattr(torch.ops, *space or ["aten"]), name), overload)
    ours = schemas()[call].parameters
    theirs = target._schema.arguments
    assert [p.name for p in ours] == [a.name for a in theirs]
    for parameter, argument in zip(ours, theirs, strict=True):
        assert parameter.kind == _kind(argument)
        _default_agrees(parameter, argument)


def _default_agrees(parameter: Parameter, argument: Any) -> None:  # noqa: ANN401 - of torch
    if parameter.is_storage or not argument.has_default_value():
        return
    default = argument.default_value
    assert parameter.default == (tuple(default) if isinstance(default, list) else default)
