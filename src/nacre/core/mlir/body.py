"""The scalar code of a region, statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from nacre.core.mlir.types import bits_of, element_text, is_float, is_unsigned, number_text


class Scalar(Struct, frozen=True):
    """One element inside of a region."""

    name: str
    dtype: str


# What adds, subtracts and multiplies: integers, floats.
ARITHMETIC = {
    "Add": ("arith.addi", "arith.addf"),
    "Sub": ("arith.subi", "arith.subf"),
    "Mul": ("arith.muli", "arith.mulf"),
}
# Which of two numbers is larger, or whether they differ: signed, unsigned, floats.
_RELATIONS = {
    "Gt": ("arith.cmpi sgt", "arith.cmpi ugt", "arith.cmpf ogt"),
    "Lt": ("arith.cmpi slt", "arith.cmpi ult", "arith.cmpf olt"),
    "Ne": ("arith.cmpi ne", "arith.cmpi ne", "arith.cmpf une"),
}


class RegionBody:
    """The scalar code of a region: one statement after the other."""

    def __init__(self, dtypes: Sequence[str]) -> None:
        self._count = 0
        self.lines: list[str] = []
        self.arguments = tuple(self._new_scalar(dtype) for dtype in dtypes)

    def _new_scalar(self, dtype: str) -> Scalar:
        self._count += 1
        return Scalar(f"%${self._count - 1}", dtype)

    def add(self, dtype: str, text: str) -> Scalar:
        """The result of any statement."""
        result = self._new_scalar(dtype)
        self.lines.append(f"{result.name} = {text}")
        return result

    def add_uniform(self, operation: str, *operands: Scalar) -> Scalar:
        """An operation whose operands and result have one type."""
        dtype = operands[0].dtype
        names = ", ".join(operand.name for operand in operands)
        return self.add(dtype, f"{operation} {names} : {element_text(dtype)}")

    def arithmetic(self, word: str, a: Scalar, b: Scalar) -> Scalar:
        """`Add`, `Sub` or `Mul`; integers wrap."""
        return self.add_uniform(ARITHMETIC[word][is_float(a.dtype)], a, b)

    def constant(self, value: float, dtype: str) -> Scalar:
        """A number."""
        return self.add(dtype, constant_text(value, dtype))

    def compare(self, word: str, a: Scalar, b: Scalar) -> Scalar:
        """Whether a relation holds; never one with NaN, but that it differs."""
        which = 2 if is_float(a.dtype) else int(is_unsigned(a.dtype))
        relation = _RELATIONS[word][which]
        return self.add("bool", f"{relation}, {a.name}, {b.name} : {element_text(a.dtype)}")

    def select(self, condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
        """The one if the condition holds, else the other."""
        names = ", ".join(part.name for part in (condition, a, b))
        return self.add(a.dtype, f"arith.select {names} : {element_text(a.dtype)}")

    def cast(self, value: Scalar, dtype: str) -> Scalar:
        """The value in a type of the same kind: floats are rounded, integers wrap."""
        if element_text(value.dtype) == element_text(dtype):
            return value
        grows = bits_of(dtype) > bits_of(value.dtype)
        if is_float(dtype):
            operation = "extf" if grows else "truncf"
        elif grows:
            operation = "extui" if is_unsigned(value.dtype) else "extsi"
        else:
            operation = "trunci"
        return self.convert(f"arith.{operation}", value, dtype)

    def convert(self, operation: str, value: Scalar, dtype: str) -> Scalar:
        """An operation from one type to another."""
        types = f"{element_text(value.dtype)} to {element_text(dtype)}"
        return self.add(dtype, f"{operation} {value.name} : {types}")


Code = Callable[..., Scalar]  # (body, *arguments): what the region yields


def constant_text(value: float, dtype: str) -> str:
    """A scalar constant."""
    return f"arith.constant {number_text(value, dtype)} : {element_text(dtype)}"
