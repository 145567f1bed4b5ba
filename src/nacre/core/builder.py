"""Building modules: types are inferred, and nonsense is refused at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES, ElementType
from nacre.base.rules import Rule
from nacre.base.source import whole_file
from nacre.core.module import CoreOperation, Module, State, TensorType
from nacre.core.ops import OPS, PROFILES, Profile
from nacre.core.rules.constants import element_value
from nacre.core.rules.facts import Use
from nacre.core.rules.module_rules import MOD01
from nacre.core.rules.signature import element_type, signature_problems
from nacre.core.values import Array, Attributes, Literal, Word, attributes
from nacre.core.verify import is_of_profile, judged, unknown_opcode

_PLACE = whole_file("<builder>")


class Builder:
    """Appends operations and says the id of each; `module` gives the result."""

    def __init__(self, profile: Profile = "nacre-1") -> None:
        if profile not in PROFILES:
            raise ValueError(f"no profile `{profile}`, expected one of {', '.join(PROFILES)}")
        self._profile: Profile = profile
        self._operations: list[CoreOperation] = []
        self._types: dict[int, TensorType] = {}
        self._states: list[State] = []

    def type_of(self, value: int) -> TensorType:
        """The type of a value."""
        return self._types[value]

    def operation(self, value: int) -> CoreOperation:
        """The operation that defines a value."""
        return self._operations[value]

    def copy(self, op: CoreOperation, operands: tuple[int, ...]) -> int:
        """An operation of another module on values of this one, whose types are the same."""
        value = len(self._operations)
        self._operations.append(CoreOperation(value, op.opcode, operands, op.attributes, op.type))
        self._types[value] = op.type
        return value

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> int:
        """An input."""
        return self._append(
            "Input", (), attributes({"name": name}), TensorType(dtype, tuple(shape))
        )

    def constant(self, array: npt.ArrayLike, dtype: str | None = None, *, copy: bool = True) -> int:
        """A tensor literal; floats are rounded to the type, and integers must fit in it.

        Without `copy` the array is kept as it is, and must not change any more.
        """
        elements = np.array(array) if copy else np.asarray(array)
        name = dtype or dtype_name(elements.dtype)
        if name not in GRAPH_TYPES:
            raise _refused(element_type.rule, f"`{name}` is no element type")
        data = _of_type(elements, GRAPH_TYPES[name])
        given = {"data": Literal(data), "dtype": Word(name), "shape": tuple(data.shape)}
        return self._append("ConstTensor", (), attributes(given), TensorType(name, data.shape))

    def add(self, opcode: str, *operands: int, **given: object) -> int:
        """An operation; its type is inferred, and InputError says why it cannot be."""
        spec = OPS.get(opcode)
        made = attributes(_worded(opcode, given))
        types = [self._type(operand) for operand in operands]
        inferred = None
        if spec is not None and not any(signature_problems(spec, len(types), made)):
            inferred = spec.infer(types, made)
        return self._append(opcode, operands, made, inferred or TensorType("f32"))

    def _append(
        self, opcode: str, operands: tuple[int, ...], given: Attributes, type_: TensorType
    ) -> int:
        value = len(self._operations)
        spec = OPS.get(opcode)
        if spec is None or not is_of_profile(spec, self._profile):
            raise _refused(*unknown_opcode(opcode, spec))
        types = tuple(self._type(operand) for operand in operands)
        verdict = judged(Use(opcode, spec, types, given, type_, self._profile))
        if verdict:
            raise InputError([rule.at(_PLACE, message) for rule, message in verdict])
        self._operations.append(CoreOperation(value, opcode, operands, given, type_))
        self._types[value] = type_
        return value

    def _type(self, value: int) -> TensorType:
        found = self._types.get(value)
        if found is None:
            raise _refused(MOD01, f"%{value} is not defined before this operation")
        return found

    def state(self, name: str, output: int, initial: int) -> None:
        """An input that keeps a value between runs."""
        self._states.append(State(name, output, initial))

    def module(self, *outputs: int) -> Module:
        """The module with these outputs."""
        return Module(tuple(self._operations), outputs, tuple(self._states))


def _refused(rule: Rule, message: str) -> InputError:
    return InputError([rule.at(_PLACE, message)])


def _of_type(array: Array, element: ElementType) -> Array:
    """An array in an element type; InputError where a value has no place in it."""
    if array.dtype == element.dtype:
        return array
    with np.errstate(all="ignore"):
        made = array.astype(element.dtype)
        if element.kind == "float":
            fits = np.isfinite(made) == np.isfinite(array)
        else:
            fits = made == array
    if not bool(np.all(fits)):
        message = f"a value of the constant does not fit in `{element.name}`"
        raise _refused(element_value.rule, message)
    return made


def _worded(opcode: str, given: Mapping[str, object]) -> dict[str, object]:
    """Plain strings as words where the table says that an attribute is one."""
    spec = OPS.get(opcode)
    found: dict[str, object] = {}
    for name, value in given.items():
        attribute = spec.attribute(name) if spec is not None else None
        is_word = attribute is not None and attribute.kind in ("word", "dtype", "padding")
        found[name] = Word(value) if is_word and isinstance(value, str) else value
    return found


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The element type of an array type."""
    for name, element in GRAPH_TYPES.items():
        if element.dtype == dtype:
            return name
    raise ValueError(f"no element type for {dtype}")
