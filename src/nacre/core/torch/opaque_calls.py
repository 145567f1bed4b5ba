"""Calls of PyTorch that stay by their names: what is kept of their arguments and results.

Complex tensors are kept as pairs of real and imaginary parts, see `core.opaque.calls`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import getitem
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.core.aten.call import Value
from nacre.core.aten.remedies import NOT_EMPTY, OTHERWISE
from nacre.core.module import TensorType
from nacre.core.opaque.arguments import Argument, Operand
from nacre.core.opaque.calls import (
    PARTS,
    ComplexValue,
    OpaqueCall,
    ResultType,
    add_call,
    values_of,
)
from nacre.core.torch.constants import Constants
from nacre.core.torch.folding import leaves_of
from nacre.core.torch.interface import is_open, static_type
from nacre.core.torch.library import torch
from nacre.core.torch.nodes import arguments_by_name, key_of
from nacre.core.unsupported import Unsupported

# Where or how a tensor is stored, and what only PyTorch's own generators know.
_STORAGE = re.compile(r"Device|Layout|MemoryFormat|Generator|Stream")
_STORAGE_NAMES = frozenset({"pin_memory", "non_blocking"})
# Kinds of schemas by types of PyTorch, without `Optional`.
_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "Tensor": "T", "List[Tensor]": "T*", "List[Optional[Tensor]]": "T?*", "int": "i",
        "SymInt": "i", "float": "f", "number": "n", "Scalar": "n", "bool": "b", "str": "s",
        "ScalarType": "d", "List[int]": "I", "List[SymInt]": "I", "List[bool]": "I",
        "List[float]": "F",
    }
)  # fmt: skip
# Element types by the numbers that defaults of schemas have for them.
_NUMBERED: Mapping[int, str] = MappingProxyType(
    {
        0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32",
        7: "float64", 9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16",
    }
)  # fmt: skip
# Calls whose complex result has the elements of their argument.
_SAME = frozenset(
    {
        "alias.default", "clone.default", "contiguous.default", "detach.default",
        "lift_fresh_copy.default", "resolve_conj.default", "resolve_neg.default",
    }
)  # fmt: skip


def file_name(target: Any) -> str:  # noqa: ANN401 - OpOverload
    """The name of a call in files."""
    return f"{target.namespace}.{target._opname}.{target._overloadname}"


def has_complex(nested: Any) -> bool:  # noqa: ANN401 - arguments or results
    """Whether a complex tensor is among nested lists."""
    return any(
        isinstance(leaf, ComplexValue)
        or bool(getattr(getattr(leaf, "dtype", None), "is_complex", False))
        for leaf in leaves_of(nested)
    )


def keep_call(node: Any, args: list[Any], kwargs: dict[str, Any], constants: Constants) -> Any:  # noqa: ANN401
    """The results of a call that is kept by its name; Unsupported where it cannot be."""
    target, key = node.target, key_of(node.target)
    first = args[0] if args else None
    if key == "view_as_real.default" and isinstance(first, ComplexValue):
        return Value(first.id)
    if key == "view_as_complex.default" and isinstance(first, Value):
        return ComplexValue(first.id)
    if key in _SAME and isinstance(first, ComplexValue):
        return first
    given = arguments_by_name(target, args, kwargs)
    results = _result_types(node)
    is_list = isinstance(node.meta.get("val"), list | tuple)
    collector = _Operands(constants)
    parameters = [_parameter(a) for a in target._schema.arguments if not _is_storage(a)]
    _require_one_list(parameters)
    arguments = tuple(collector.argument(name, kind, given[name]) for name, kind, _ in parameters)
    call = OpaqueCall(
        file_name(target), _schema_text(parameters), arguments, tuple(collector.values), results,
        is_list,
    )  # fmt: skip
    builder = constants.builder
    values = values_of(add_call(builder, call, builder.count), results)
    kept = [Value(value) if isinstance(value, int) else value for value in values]
    return kept if is_list else kept[0]


def _is_storage(argument: Any) -> bool:  # noqa: ANN401 - torch.Argument
    return argument.name in _STORAGE_NAMES or bool(_STORAGE.search(str(argument.real_type)))


def _parameter(argument: Any) -> tuple[str, str, bool]:  # noqa: ANN401 - torch.Argument
    """Name, kind, and whether it is given by name alone."""
    text = str(argument.real_type)
    inner = text.removeprefix("Optional[")
    is_optional = inner != text
    kind = _KINDS.get(inner[:-1] if is_optional else inner)
    if kind is None:
        raise Unsupported(f"its argument `{argument.name}` is of type {text}", OTHERWISE)
    return argument.name, f"{kind}?" if is_optional else kind, bool(argument.kwarg_only)


def _require_one_list(parameters: Sequence[tuple[str, str, bool]]) -> None:
    lists = [name for name, kind, _ in parameters if "*" in kind]
    if len(lists) > 1:
        names = " and ".join(f"`{name}`" for name in lists)
        reason = f"{names} are lists of tensors; an instruction has room for one"
        raise Unsupported(reason, OTHERWISE)


def _schema_text(parameters: Sequence[tuple[str, str, bool]]) -> str:
    """Arguments as `core.aten.schemas` writes them; behind a `*` those that go by name."""
    words = [f"{name}:{kind}" for name, kind, is_keyword in parameters if not is_keyword]
    named = [f"{name}:{kind}" for name, kind, is_keyword in parameters if is_keyword]
    return " ".join([*words, "*", *named] if named else words)


def _result_types(node: Any) -> tuple[ResultType | None, ...]:  # noqa: ANN401 - torch.fx.Node
    """None for what there is not, as the Q of a QR that is asked for R alone."""
    meta = node.meta.get("val")
    if not isinstance(meta, list | tuple):
        return (None if meta is None else _result_type(meta),)
    used = {user.args[1] for user in node.users if user.target is getitem}
    return tuple(
        None if part is None or (0 in part.shape and at not in used) else _result_type(part)
        for at, part in enumerate(meta)
    )


def _result_type(meta: Any) -> ResultType:  # noqa: ANN401 - a fake tensor
    word = str(getattr(meta, "dtype", "")).removeprefix("torch.")
    if word not in PARTS:
        return ResultType(static_type(meta))
    if is_open(meta):
        return ResultType(static_type(meta))  # says why not
    if 0 in meta.shape:
        raise Unsupported("it has no elements; Core IR has no empty tensors", NOT_EMPTY)
    return ResultType(TensorType(PARTS[word], (*meta.shape, 2)), is_complex=True)


class _Operands:
    """The tensors among the arguments of a call, in order."""

    def __init__(self, constants: Constants) -> None:
        self.values: list[int] = []
        self._constants = constants

    def argument(self, name: str, kind: str, given: Any) -> Argument:  # noqa: ANN401 - whatever it is
        """An argument as it is kept."""
        if isinstance(given, list | tuple):
            parts = tuple(self.argument(name, kind, part) for part in given)
            return self._list(name, parts)
        if isinstance(given, Value | ComplexValue | torch().Tensor):
            return self._operand(given)
        if isinstance(given, torch().dtype):
            return str(given).removeprefix("torch.")
        if kind.startswith("f") and type(given) is int:
            return float(given)
        if kind.startswith("d") and type(given) is int:
            return _NUMBERED.get(given, f"type {given}")
        if given is None or isinstance(given, bool | int | float | str):
            return given
        raise Unsupported(f"its argument `{name}` is a {type(given).__name__}", OTHERWISE)

    def _list(self, name: str, parts: tuple[Argument, ...]) -> Argument:
        if any(isinstance(part, str) for part in parts):
            raise Unsupported(f"its argument `{name}` is a list of strings", OTHERWISE)
        numbers = [part for part in parts if isinstance(part, float)]
        if any(float(np.float32(number)) != number for number in numbers):
            reason = f"its argument `{name}` has floats of 64 bits; lists of the format have 32"
            raise Unsupported(reason, OTHERWISE)
        return tuple(int(part) if isinstance(part, bool) else part for part in parts)

    def _operand(self, given: Any) -> Operand:  # noqa: ANN401 - a value or a tensor
        is_complex = has_complex(given)
        if isinstance(given, Value | ComplexValue):
            value = given.id
        else:
            real = torch().view_as_real(given.resolve_conj()) if is_complex else given
            value = self._constants.value(real)
        self.values.append(value)
        return Operand(len(self.values) - 1, is_complex)
