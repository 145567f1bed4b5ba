"""The cases that a backend is tried on: types, shapes, attributes and values, always the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from zlib import crc32

import numpy as np

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.call import Array, Call, Example, Quantization, TensorType
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.numbers import widen_to_f32
from nacre.kernels.numbers.quantization import quantizer
from nacre.kernels.registry import PRIMITIVES
from nacre.nem.api.conformance_types import (
    Form,
    TypeCombination,
    store_combinations,
    type_combinations,
)
from nacre.nem.spec.opcodes import OPCODES, Opcode, OperandSpec

_PLAIN_SUMS = ("linear_algebra", "convolution", "pooling", "reduction")
_SUMS = (*_PLAIN_SUMS, "normalization")
# Values: any of a type; the ends of a type, NaN and infinities; results halfway between two.
Kind = Literal["random", "edges", "ties"]
_GROUP_SIZE = 2
# Sums of these, or themselves, lie halfway between two neighbours of f16, bf16 or i8.
_HALFWAY = (1, 3, 5, -1, -3, 0.5, -1.5, 256, 257, 258, 259, 2048, 2049, 2050, 2051)
_REACH = 4.0  # real values that a quantised operand stands for go about as far as this
_EVEN_SCALE = 0.5  # sums of its multiples are exact, in whatever order they are taken


@dataclass(frozen=True, eq=False)
class Case:
    """One call of an opcode with its inputs."""

    opcode: str
    types: str
    about: str  # shapes and what else tells it from other cases
    call: Call
    inputs: tuple[Array, ...]
    is_strided: bool
    is_exact: bool  # sums of these values are exact in f32, in whatever order they are taken
    is_store: bool = False  # what a store that quantises gives is expected of `quantize`

    def expected(self) -> list[Array]:
        """What nacre's own kernel gives, or its store."""
        arrays = self.outputs()
        if self.is_store:
            (values,), (type_,) = self.inputs, self.call.outputs
            arrays[0][...] = quantizer(type_)(widen_to_f32(values))
        else:
            PRIMITIVES[self.opcode].bind(self.call)(self.inputs, arrays)
        return arrays

    def outputs(self) -> list[Array]:
        """Arrays to be filled, with elements that stand out where nothing was written."""
        arrays = []
        for type_ in self.call.outputs:
            values = _empty_array(type_.shape, type_.dtype, self.is_strided)
            values.fill(type_.dtype.type(85))
            arrays.append(values)
        return arrays


def cases(opcode: Opcode) -> Iterator[Case]:
    """Every case of an opcode, those of one combination of types together."""
    for types in type_combinations(opcode):
        yield from _cases_of_types(opcode, types)


def store_cases() -> Iterator[Case]:
    """Stores that quantise, as the `quantize` whose bits they give."""
    for types in store_combinations():
        for case in _cases_of_types(OPCODES["quantize"], types):
            yield replace(case, is_store=True)


def _cases_of_types(opcode: Opcode, types: TypeCombination) -> Iterator[Case]:
    primitive = PRIMITIVES.get(opcode.name)
    for place, example in enumerate(primitive.examples if primitive else ()):
        builder = _CaseBuilder(opcode, types, example)
        yield builder.case()
        if place > 0:
            continue
        yield builder.case(values="edges")
        yield builder.case(values="ties")
        yield builder.case(is_strided=True)
        for variation in _variations(opcode, types):
            yield builder.case(variation, values="edges")
            yield builder.case(variation)


def _variations(opcode: Opcode, types: TypeCombination) -> Iterator[dict[str, Any]]:
    """Every other choice that an optional attribute offers, one at a time."""
    floats = [e for e in types.elems.values() if not ELEMENT_TYPES[e].is_integer]
    for item in opcode.attributes:
        if item.required or (opcode.category.startswith("elementwise") and types.form != "plain"):
            continue
        if item.type == "id":
            is_idle = opcode.name == "cast" and not (floats and len(floats) < len(types.elems))
            choices = () if is_idle else item.allowed
            yield from ({item.name: c} for c in choices if c != item.default)
        elif item.type == "bool" and (item.default is None or not floats):
            yield from ({item.name: c} for c in (True, False) if c is not item.default)


@dataclass(frozen=True)
class _CaseBuilder:
    """Makes the cases of one combination of types and one geometry."""

    opcode: Opcode
    types: TypeCombination
    example: Example

    def case(
        self,
        variation: Mapping[str, Any] | None = None,
        values: Kind = "random",
        is_strided: bool = False,
    ) -> Case:
        label = self.types.label(self.opcode)
        about = self._describe(variation or {}, values, is_strided)
        rng = np.random.default_rng(crc32(f"{self.opcode.name} {label} {about}".encode()))
        attributes = self._attributes(variation or {})
        specs = self._specs()
        inputs = tuple(
            self._type(spec, shape, values, rng)
            for spec, shape in zip(specs, self.example.shapes, strict=False)
        )
        shapes = PRIMITIVES[self.opcode.name].shape([t.shape for t in inputs], attributes)
        if shapes is None:
            raise ValueError(f"the shapes of a case of `{self.opcode.name}` do not fit")
        (result,) = self.opcode.outputs
        outputs = tuple(self._type(result, shape, values, rng) for shape in shapes)
        if "keeps_quant" in self.opcode.traits:
            outputs = tuple(replace(output, quant=inputs[0].quant) for output in outputs)
        arrays = tuple(
            _lay_out(self._values(spec, type_, inputs, values, rng), is_strided)
            for spec, type_ in zip(specs, inputs, strict=False)
        )
        call = Call(inputs, outputs, attributes)
        is_exact = values == "ties" and self.opcode.category in _PLAIN_SUMS
        return Case(self.opcode.name, label, about, call, arrays, is_strided, is_exact)

    def _specs(self) -> list[OperandSpec]:
        inputs = [o for o in self.opcode.inputs if o.name in self.types.elems]
        # One variadic operand stands for all the shapes there are.
        return inputs * len(self.example.shapes) if inputs[0].variadic else inputs

    def _describe(self, variation: Mapping[str, Any], values: Kind, is_strided: bool) -> str:
        count = len(self._specs())
        parts = [", ".join(str(list(shape)) for shape in self.example.shapes[:count])]
        parts += [f"{name}={value}" for name, value in self.example.attributes.items()]
        parts += [f"{name}={value}" for name, value in variation.items()]
        parts += [] if values == "random" else [values]
        parts += ["strided"] if is_strided else []
        return "; ".join(parts)

    def _attributes(self, variation: Mapping[str, Any]) -> dict[str, Any]:
        attributes = {**self.example.attributes, **variation}
        if self.types.accumulator is not None:
            attributes["accum_type"] = self.types.accumulator
        defaults = {a.name: a.default for a in self.opcode.attributes if a.default is not None}
        return {**defaults, **attributes}

    def _type(
        self, spec: OperandSpec, shape: Dims, values: Kind, rng: np.random.Generator
    ) -> TensorType:
        element = ELEMENT_TYPES[self.types.elems[spec.name]]
        form = self._form(spec)
        bare = TensorType(element, shape)
        if form == "plain" or not element.is_integer:
            return bare
        axis = self._axis(spec, shape, form)
        quant = self._quantization(spec, bare, axis, form, rng)
        if values == "ties":
            quant = _halve_scales(quant, is_output=spec.role == "output")
        return TensorType(element, shape, quant)

    def _form(self, spec: OperandSpec) -> Form:
        """How one operand is quantised; beside weights by parts, the others are whole."""
        form = self.types.form
        if spec.role not in ("input", "weight", "output"):
            return "plain"
        if form == "raw_output":
            return "plain" if spec.role == "output" else "per_tensor"
        is_product = self.opcode.category in ("linear_algebra", "convolution")
        if is_product and spec.role != "weight" and form != "plain":
            return "per_tensor"
        return form

    def _axis(self, spec: OperandSpec, shape: Dims, form: Form) -> int | None:
        """By channels the last axis; groups of weights lie along what is summed over."""
        if form == "per_tensor":
            return None
        if form == "per_channel" or spec.role != "weight":
            return len(shape) - 1
        return 0 if self.opcode.name == "depthwise_conv2d" else len(shape) - 2

    def _quantization(
        self,
        spec: OperandSpec,
        type_: TensorType,
        axis: int | None,
        form: Form,
        rng: np.random.Generator,
    ) -> Quantization:
        size = 1 if axis is None else type_.shape[axis]
        group = _GROUP_SIZE if form == "per_group" else 1
        count = -(-size // group)
        scale = rng.uniform(0.5, 1.0, count) * self._step(spec, type_)
        if self.opcode.category in ("pooling", "reduction"):
            scale = np.full(count, _EVEN_SCALE * (2 if spec.role == "output" else 1))
        low, high = max(int(type_.elem.lowest), -5), min(int(type_.elem.highest), 7)
        zero = rng.integers(low, high, count, endpoint=True)
        return Quantization(scale.astype(np.float32), zero.astype(np.int32), axis, group)

    def _step(self, spec: OperandSpec, type_: TensorType) -> float:
        """A scale under which results fill the type, now and then beyond its ends."""
        is_product = self.opcode.category in ("linear_algebra", "convolution")
        reach = 2 * _REACH**2 if is_product and spec.role == "output" else _REACH
        return reach / float(type_.elem.highest)

    def _values(
        self,
        spec: OperandSpec,
        type_: TensorType,
        inputs: tuple[TensorType, ...],
        kind: Kind,
        rng: np.random.Generator,
    ) -> Array:
        if spec.role == "indices":
            x = inputs[0].shape
            size = x[self.example.attributes["axis"] % len(x)]
            return rng.integers(0, size, type_.shape).astype(type_.dtype)
        if type_.elem.is_integer:
            return self._integers(spec, type_, kind, rng)
        deviation = 60.0 if self.opcode.name == "cast" else 2.0
        values = rng.standard_normal(type_.shape) * deviation
        if kind == "edges":
            chosen = rng.choice(self._float_edges(type_), type_.shape)
            values = np.where(rng.random(type_.shape) < self._edge_share, chosen, values)
            _place_required(values, (np.nan, np.inf, -np.inf))
        elif kind == "ties":
            is_sum = self.opcode.category in _SUMS
            chosen = np.arange(-60, 61) if is_sum else np.array(_HALFWAY)
            values = rng.choice(chosen, type_.shape)
        with np.errstate(over="ignore"):
            return values.astype(type_.dtype)

    @property
    def _edge_share(self) -> float:
        # A single NaN fills the whole result of a sum: leave some results without.
        return 0.1 if self.opcode.category in _SUMS or self.opcode.category == "softmax" else 0.7

    def _float_edges(self, type_: TensorType) -> list[float]:
        edges = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5]
        if self.opcode.category in _SUMS:
            return edges  # the largest would overflow in one order of summation and not in another
        smallest = float(np.ldexp(1.0, -24 if type_.elem.name == "f16" else -133))
        return [*edges, float(type_.elem.lowest), float(type_.elem.highest), smallest]

    def _integers(
        self, spec: OperandSpec, type_: TensorType, kind: Kind, rng: np.random.Generator
    ) -> Array:
        low, high = int(type_.elem.lowest), int(type_.elem.highest)
        is_second = spec.name == "B" and type_.quant is None
        is_divisor = is_second and self.opcode.name == "div"
        if spec.role == "bias" and kind != "edges":
            low, high = -20_000, 20_000
        if type_.quant is not None and self.opcode.category in ("pooling", "reduction"):
            low, high = max(low, -1000), min(high, 1000)
        if self.opcode.name == "pow" and is_second:
            low, high = 0, min(high, 5)
        if kind == "ties":
            low, high = max(low, -5), min(high, 5)
        values = rng.integers(low, high, type_.shape, endpoint=True)
        if kind == "edges":
            every = (low, -1, 1, high) if is_divisor else (low, low + 1, -1, 0, 1, high - 1, high)
            edges = [e for e in every if low <= e <= high]
            values = rng.choice(np.array(edges, np.int64), type_.shape)
            # The least integer by -1 is the one quotient that leaves its type.
            _place_required(values, (max(low, -1), 1) if is_divisor else (low, high))
        if is_divisor:
            values = np.where(values == 0, 3, values)
        return values.astype(type_.dtype)


def _place_required(values: Array, firm: Sequence[float]) -> None:
    """Put values that must not be missing at places far apart, as far as there are places."""
    step = max(1, values.size // len(firm))
    for index, value in zip(range(0, values.size, step), firm, strict=False):
        values.flat[index] = value


def _halve_scales(quant: Quantization, is_output: bool) -> Quantization:
    """The same form of quantisation, in which half of all results lie halfway between two steps.

    An odd zero point tells whether it is added before or after rounding.
    """
    scale = np.full_like(quant.scale, 2.0 if is_output else 1.0)
    zero = quant.zero_point | 1 if is_output else np.zeros_like(quant.zero_point)
    return replace(quant, scale=scale, zero_point=zero)


def _lay_out(values: Array, is_strided: bool) -> Array:
    """The same values, read-only; strided, with other elements between them."""
    placed = _empty_array(values.shape, values.dtype, is_strided)
    placed[...] = values
    placed.flags.writeable = False
    return placed


def _empty_array(shape: Dims, dtype: np.dtype[Any], is_strided: bool) -> Array:
    if not is_strided:
        return np.zeros(shape, dtype)
    return np.zeros((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
