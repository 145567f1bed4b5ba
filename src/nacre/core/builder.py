"""Building modules: types are inferred, and nonsense is refused at once.

What breaks a rule raises InputError with the rule's code; what is of the wrong Python type, such as
a float in the place of a value's id, raises TypeError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES, ElementType
from nacre.base.excerpt import backquote
from nacre.base.rules import Rule
from nacre.base.source import whole_file
from nacre.core.module import CoreOperation, Module, State, TensorType
from nacre.core.ops import OPS, PROFILES, Profile
from nacre.core.rules.constants import element_value
from nacre.core.rules.facts import OperationFacts
from nacre.core.rules.module_rules import (
    MOD01,
    MOD03,
    MOD06,
    MOD08,
    MOD15,
    input_name_problem,
    state_problems,
)
from nacre.core.rules.signature import element_type, signature, signature_problems
from nacre.core.values import Array, Attributes, Literal, attributes, kind_of, word
from nacre.core.verify import is_of_profile, unknown_opcode, verdict_of

_PLACE = whole_file("<builder>")


class Builder:
    """Appends operations and says the id of each; `module` gives the result."""

    def __init__(self, profile: Profile = "nacre-1") -> None:
        if profile not in PROFILES:
            raise ValueError(f"no profile `{profile}`, expected one of {', '.join(PROFILES)}")
        self._profile: Profile = profile
        self._operations: list[CoreOperation] = []
        self._types: dict[int, TensorType] = {}
        self._inputs: dict[str, TensorType] = {}
        self._states: dict[str, State] = {}
        self._has_stand_ins = False

    @property
    def count(self) -> int:
        """How many operations there are."""
        return len(self._operations)

    def operations_since(self, count: int) -> Sequence[CoreOperation]:
        """The operations that were added when there were already so many."""
        return self._operations[count:]

    def type_of(self, value: int) -> TensorType:
        """The type of a value."""
        return self._types[value]

    def operation(self, value: int) -> CoreOperation:
        """The operation that defines a value."""
        return self._operations[value]

    def copy(self, op: CoreOperation, operands: tuple[int, ...]) -> int:
        """An operation of another module on values of this one, whose types are the same."""
        if op.opcode == "Input":
            return self.input(op.attributes["name"], op.type.dtype, op.type.shape)
        value = len(self._operations)
        self._operations.append(CoreOperation(value, op.opcode, operands, op.attributes, op.type))
        self._types[value] = op.type
        return value

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> int:
        """An input. Inputs come before all other operations, and each has a name of its own."""
        _require(name, str, "the name of an input", "a string")
        _require(
            dtype, str, f"the element type of input {backquote(name)}", "a string such as 'f32'"
        )
        _require(shape, Iterable, f"the shape of input {backquote(name)}", "a list of dimensions")
        type_ = TensorType(dtype, tuple(shape))
        if len(self._inputs) < len(self._operations):
            raise _refusal(MOD06, f"input {backquote(name)} comes after an operation")
        problem = input_name_problem(name, self._inputs, "an Input")
        if problem is not None:
            raise _refusal(MOD08, problem)
        value = self._append("Input", (), attributes({"name": name}), type_)
        self._inputs[name] = type_
        return value

    def stand_in(self, type_: TensorType) -> int:
        """A value in the place of one that could not be made, so that what follows is looked at.

        It is for importers that report all mistakes of a model: no module can be had with it.
        """
        self._has_stand_ins = True
        return self._append("Input", (), attributes({"name": ""}), type_)

    def constant(self, array: npt.ArrayLike, dtype: str | None = None, *, copy: bool = True) -> int:
        """A tensor literal; floats are rounded to the type, and integers must fit in it.

        Without `copy` the array is kept as it is, and must not change any more.
        """
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError("a constant is a masked array, expected one with all of its values")
        elements = np.array(array) if copy else np.asarray(array)
        name = dtype or dtype_name(elements.dtype)
        if name not in GRAPH_TYPES:
            raise _refusal(element_type.rule, f"{backquote(str(name))} is no element type")
        data = _to_element_type(elements, GRAPH_TYPES[name])
        type_ = TensorType(name, data.shape)
        given = {"data": Literal(data), "dtype": word(name), "shape": type_.shape}
        return self._append("ConstTensor", (), attributes(given), type_)

    def add(self, opcode: str, *operands: int, **given: object) -> int:
        """An operation; its type is inferred, and InputError says why it cannot be."""
        _require(opcode, str, "an opcode", "a string such as 'Relu'")
        if opcode == "Input":
            raise _refusal(signature.rule, "an Input is made with `input`, which knows its type")
        spec = OPS.get(opcode)
        typed_attributes = attributes(_strings_to_words(opcode, given))
        types = [self._type(operand) for operand in operands]
        inferred = None
        if spec is not None and not any(signature_problems(spec, len(types), typed_attributes)):
            inferred = spec.infer(types, typed_attributes)
        return self._append(opcode, operands, typed_attributes, inferred or TensorType("f32"))

    def _append(
        self, opcode: str, operands: tuple[int, ...], given: Attributes, type_: TensorType
    ) -> int:
        value = len(self._operations)
        spec = OPS.get(opcode)
        if spec is None or not is_of_profile(spec, self._profile):
            raise _refusal(*unknown_opcode(opcode, spec))
        types = tuple(self._type(operand) for operand in operands)
        verdict = verdict_of(OperationFacts(opcode, spec, types, given, type_, self._profile))
        if verdict:
            raise InputError([rule.at(_PLACE, message) for rule, message in verdict])
        self._operations.append(CoreOperation(value, opcode, operands, given, type_))
        self._types[value] = type_
        return value

    def _type(self, value: int) -> TensorType:
        if type(value) is not int:
            raise _not_an_id("an operand", value)
        found = self._types.get(value)
        if found is None:
            raise _refusal(MOD01, f"%{value} is not defined before this operation")
        return found

    def state(self, name: str, output: int, initial: int) -> None:
        """An input that keeps a value between runs."""
        _require(name, str, "the name of a state", "a string")
        for value in (output, initial):
            if type(value) is not int:
                raise _not_an_id(f"a value of state {backquote(name)}", value)
        if self._profile == "core-v1":
            raise _refusal(MOD15, "state is of `nacre-1`, not of `core-v1`")
        state = State(name, output, initial)
        problems = list(state_problems(state, self._inputs, self._operation_or_none, self._states))
        if problems:
            raise InputError([MOD15.at(_PLACE, message) for message in problems])
        self._states[name] = state

    def _operation_or_none(self, value: int) -> CoreOperation | None:
        return self._operations[value] if value in self._types else None

    def module(self, *outputs: int) -> Module:
        """The module with these outputs."""
        if not outputs:
            raise _refusal(MOD03, "the module has no output")
        for value in outputs:
            if type(value) is not int:
                raise _not_an_id("an output", value)
            if value not in self._types:
                raise _refusal(MOD03, f"output %{value} is not defined")
        if self._has_stand_ins:
            raise _refusal(MOD08, "a value stands in for one that could not be made")
        return Module(tuple(self._operations), outputs, tuple(self._states.values()))


def _require(value: object, wanted: type, what: str, expected: str) -> None:
    """TypeError where an argument is of another Python type than a builder can take."""
    if not isinstance(value, wanted):
        raise TypeError(f"{what} is {kind_of(value)}, expected {expected}")


def _not_an_id(what: str, value: object) -> TypeError:
    found = kind_of(value)
    return TypeError(f"{what} is {found}, expected the id of a value, as `add` gives it")


def _refusal(rule: Rule, message: str) -> InputError:
    return InputError([rule.at(_PLACE, message)])


def _to_element_type(array: Array, element: ElementType) -> Array:
    """An array in an element type; InputError where a value has no place in it."""
    if array.dtype == element.dtype:
        return array
    with np.errstate(all="ignore"):
        converted = array.astype(element.dtype)
        if element.kind == "float":
            fits = np.isfinite(converted) == np.isfinite(array)
        else:
            fits = converted == array
    if not bool(np.all(fits)):
        message = f"a value of the constant does not fit in `{element.name}`"
        raise _refusal(element_value.rule, message)
    return converted


def _strings_to_words(opcode: str, given: Mapping[str, object]) -> dict[str, object]:
    """Plain strings as words where the table says that an attribute is one."""
    spec = OPS.get(opcode)
    words: dict[str, object] = {}
    for name, value in given.items():
        attribute = spec.attribute(name) if spec is not None else None
        is_word = attribute is not None and attribute.kind in ("word", "dtype", "padding")
        words[name] = word(value) if is_word and isinstance(value, str) else value
    return words


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The element type of an array type."""
    for name, element in GRAPH_TYPES.items():
        if element.dtype == dtype:
            return name
    raise ValueError(f"no element type for {dtype}")
