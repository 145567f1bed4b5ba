"""Single tasks that were measured, as programs of NEM: operands in L1, or one transfer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from numpy import format_float_positional

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.registry import PRIMITIVES
from nacre.nem.model.devices import Device
from nacre.nem.model.families import ABSENT, ACCUM, ACCUMULATOR, ANY, Instance, input_type
from nacre.nem.spec.opcodes import OPCODES, AttributeSpec, Opcode, OperandSpec

Shape = tuple[int, ...]
MEMORIES = ("DDR", "L2", "L1")
_COPIES = ("transfer", "store")
_ONES = ("strides", "dilations", "steps")  # what windows and slices do unless they say otherwise
_ZEROS = ("pads",)
_MOST_BITS = 8  # of integers that carry a scale


class UnfitError(ValueError):
    """A workload that cannot be a task of the device; the message says why."""


@dataclass(frozen=True)
class Workload:
    """A task of the device: an opcode with shapes and attributes, or a copy of bytes.

    Types of weights and results follow from that of the input, where the device leaves no choice.
    """

    operation: str
    inputs: tuple[Shape, ...] = ()
    elem: str = "i8"
    attributes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    weight_elem: str | None = None
    out_elem: str | None = None
    size_bytes: int | None = None  # of a copy
    source: str | None = None  # its memories
    target: str | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What tells whether two rows are of one workload."""
        attributes = tuple(sorted((k, str(v)) for k, v in self.attributes.items()))
        return (self.operation, self.inputs, self.elem, attributes, self.weight_elem, self.out_elem,
                self.size_bytes, self.source, self.target)  # fmt: skip

    def __str__(self) -> str:
        if self.operation in _COPIES:
            return f"{self.operation} {self.size_bytes} bytes {self.source} to {self.target}"
        shapes = " ".join("x".join(map(str, shape)) or "scalar" for shape in self.inputs)
        given = "".join(f" {k}={_attribute_text(v)}" for k, v in self.attributes.items())
        return f"{self.operation} {shapes} {self.elem}{given}"

    def program(self, device: Device) -> str:
        """The task as a program; UnfitError where it cannot be one."""
        opcode = OPCODES.get(self.operation)
        if opcode is None:
            raise UnfitError(f"`{self.operation}` is no opcode")
        if self.operation in _COPIES:
            return self._copy_program()
        return "".join(_ComputeTask(self, opcode, device).lines())

    def _copy_program(self) -> str:
        size = self.size_bytes
        if size is None or size < 1 or self.source is None or self.target is None:
            raise UnfitError(f"a {self.operation} needs a number of bytes and two memories")
        return (
            "program workload:\n"
            f"buffer A : {self.source} (size={size})\nbuffer B : {self.target} (size={size})\n"
            f"t = {self.operation}.sync(dst=region(B, 0, {size}), src=region(A, 0, {size}))\n"
        )


@dataclass(frozen=True)
class _ComputeTask:
    """A compute task with the types that the device has for it."""

    workload: Workload
    opcode: Opcode
    device: Device

    def lines(self) -> Iterator[str]:
        specs = self._input_specs()
        instance = self._instance(len(specs))
        elems = _element_types(self.workload, self.opcode, instance)
        attributes = self._attributes(instance)
        outputs = self._output_shapes(attributes)
        operands = [
            *zip(specs, self.workload.inputs, strict=True),
            *((self.opcode.outputs[0], shape) for shape in outputs),
        ]
        yield "program workload:\n"
        for place, (spec, shape) in enumerate(operands):
            yield _region_lines(place, spec, shape, elems[spec.name])
        names = [f"r{place}" for place in range(len(operands))]
        given = "".join(f" {name}={_attribute_text(v)}" for name, v in attributes.items())
        reads, writes = ", ".join(names[: len(specs)]), ", ".join(names[len(specs) :])
        yield f"t = {self.opcode.name}.sync in {reads} out {writes}{given}\n"

    def _input_specs(self) -> list[OperandSpec]:
        count = len(self.workload.inputs)
        specs, most = list(self.opcode.inputs), self.opcode.max_inputs
        if count < self.opcode.min_inputs or (most is not None and count > most):
            least = self.opcode.min_inputs
            more = " or more" if most is None else f" to {most}" if most > least else ""
            raise UnfitError(f"`{self.opcode.name}` has {count} inputs, expected {least}{more}")
        return specs * count if specs[0].variadic else specs[:count]

    def _instance(self, count: int) -> Instance | None:
        """The device's variant for these types; None where no family says which there are."""
        if not self.opcode.families:
            return None
        known = self.device.effective_by_opcode.get(self.opcode.name, [])
        fitting = [i for i in known if self._fits(i, count)]
        if not fitting:
            raise UnfitError(
                f"device `{self.device.name}` has no `{self.opcode.name}` of {self._types_text()}"
            )
        return fitting[0]

    def _fits(self, instance: Instance, count: int) -> bool:
        types = _element_types(self.workload, self.opcode, instance)
        given = {o.name for o in self.opcode.inputs[:count]}
        absent = {
            spec.name
            for name, elem in instance.operands.items()
            if elem == ABSENT
            for spec in self.opcode.operands_bound_to(name)
        }
        inputs = self.opcode.inputs if self.opcode.is_product else ()
        biases = {o.name for o in inputs if o.role == "bias"}
        has_bias = bool(biases & given)
        return (
            input_type(self.opcode, instance) in (self.workload.elem, ANY, None)
            and not absent & given
            and (has_bias or not biases or biases <= absent)
            and all(types[name] == elem for name, elem in self._element_types().items())
        )

    def _element_types(self) -> dict[str, str]:
        """Element types that the row gives, by operand."""
        asked = {}
        for spec in self.opcode.operands:
            if spec.role == "weight" and self.workload.weight_elem is not None:
                asked[spec.name] = self.workload.weight_elem
            if spec.role == "output" and self.workload.out_elem is not None:
                asked[spec.name] = self.workload.out_elem
        return asked

    def _types_text(self) -> str:
        more = [e for e in (self.workload.weight_elem, self.workload.out_elem) if e is not None]
        return " and ".join([self.workload.elem, *more])

    def _attributes(self, instance: Instance | None) -> dict[str, Any]:
        given = dict(self.workload.attributes)
        unknown = [name for name in given if self.opcode.attribute(name) is None]
        if unknown:
            raise UnfitError(f"`{self.opcode.name}` has no attribute `{unknown[0]}`")
        for spec in self.opcode.attributes:
            if spec.required and spec.name not in given:
                given[spec.name] = self._default(spec, instance)
        return given

    def _default(self, spec: AttributeSpec, instance: Instance | None) -> object:
        if spec.name == ACCUMULATOR:
            is_integer = ELEMENT_TYPES[self.workload.elem].is_integer
            usual = "i32" if is_integer else "f32"
            return usual if instance is None else instance.attributes.get(ACCUM, usual)
        if spec.length is not None and spec.name in (*_ONES, *_ZEROS):
            return (int(spec.name in _ONES),) * spec.length
        raise UnfitError(f"`{self.opcode.name}` needs `{spec.name}`")

    def _output_shapes(self, attributes: Mapping[str, Any]) -> list[Shape]:
        defaults = {a.name: a.default for a in self.opcode.attributes if a.default is not None}
        shapes = PRIMITIVES[self.opcode.name].shape(
            list(self.workload.inputs), {**defaults, **attributes}
        )
        if shapes is None or not all(dim > 0 for shape in shapes for dim in shape):
            raise UnfitError(f"the shapes of {self.workload} do not fit each other")
        return [tuple(shape) for shape in shapes]


def _element_types(workload: Workload, opcode: Opcode, instance: Instance | None) -> dict[str, str]:
    """The element type of every operand."""
    is_integer = ELEMENT_TYPES[workload.elem].is_integer
    types = {}
    for spec in opcode.operands:
        types[spec.name] = "i32" if spec.elem == "integer" else workload.elem
        if spec.role == "bias" and opcode.is_product:
            types[spec.name] = "i32" if is_integer else "f32"
        if instance is None and spec.role == "weight" and workload.weight_elem is not None:
            types[spec.name] = workload.weight_elem
        if instance is None and spec.role == "output" and workload.out_elem is not None:
            types[spec.name] = workload.out_elem
    for name, elem in (instance.operands if instance is not None else {}).items():
        if elem not in (ABSENT, ANY):
            types.update({spec.name: elem for spec in opcode.operands_bound_to(name)})
    return types


def _region_lines(place: int, spec: OperandSpec, shape: Shape, elem: str) -> str:
    """The buffer of an operand, and its region."""
    type_ = ELEMENT_TYPES[elem]
    size = max(1, -(-math.prod(shape) * type_.bits // 8))
    is_scaled = type_.is_integer and type_.bits <= _MOST_BITS and spec.is_main
    quant = ", quant=per_tensor(scale=1.0, zero_point=0)" if is_scaled else ""
    dims = ", ".join(map(str, shape))
    return (
        f"buffer B{place} : L1 (size={size})\n"
        f"let r{place} = region(B{place}, 0, {size}) elem={elem}, shape=[{dims}],"
        f" layout={spec.layout or 'C'}{quant}\n"
    )


def _attribute_text(value: object) -> str:
    """An attribute as a task writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(str, value))}]"
    return format_float_positional(value) if isinstance(value, float) else str(value)
