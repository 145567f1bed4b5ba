"""Where one operation becomes statements of MLIR.

Names are settled so that nothing meets: `%12` is the value %12 of the module, a step on the way
there has a `$` in its name (`%sum$12`), and so has everything inside of a region (`%$0`). Arguments
of the function have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from nacre.core.mlir.body import Code, RegionBody, constant_text
from nacre.core.mlir.types import element_text, tensor_text
from nacre.core.module import CoreOperation, Shape, TensorType

Loop = Literal["parallel", "reduction"]
Axes = tuple[int | None, ...]  # the loop that each axis of a tensor follows; None: stays at 0


class Value(Struct, frozen=True):
    """A tensor: its name in the text, and its type in the words of Core IR."""

    name: str
    type: TensorType

    @property
    def type_text(self) -> str:
        """Its type as MLIR writes it."""
        return tensor_text(self.type)


class MlirWriter:
    """One operation on its way: its operands, and the statements that compute it."""

    def __init__(self, op: CoreOperation, operands: Sequence[Value]) -> None:
        self.op = op
        self.type = op.type
        self.operands = tuple(operands)
        self._statements: dict[str, str] = {}  # by the name of what they define
        self._names: dict[str, int] = {}  # how often a stem was used

    def _name(self, stem: str) -> str:
        count = self._names[stem] = self._names.get(stem, 0) + 1
        return f"%{stem}{count if count > 1 else ''}${self.op.value_id}"

    def add(self, stem: str, text: str, type_: TensorType) -> Value:
        """One more statement and the tensor that it defines."""
        name = self._name(stem)
        self._statements[name] = text
        return Value(name, type_)

    def scalar(self, stem: str, value: float, dtype: str) -> str:
        """The name of a constant that is no tensor."""
        return self.add(stem, constant_text(value, dtype), TensorType(dtype)).name

    def empty(self, type_: TensorType) -> Value:
        """A tensor whose elements do not matter."""
        return self.add("empty", f"tensor.empty() : {tensor_text(type_)}", type_)

    def zeros(self, type_: TensorType) -> Value:
        """A tensor of zeros."""
        zero, empty = self.scalar("zero", 0, type_.dtype), self.empty(type_)
        typed = f"ins({zero} : {element_text(type_.dtype)}) outs({empty.name} : {empty.type_text})"
        return self.add("zeros", f"linalg.fill {typed} -> {empty.type_text}", type_)

    def finish(self, result: Value) -> tuple[Value, list[str]]:
        """The result under the name of the module's value, and the lines of all statements.

        A result that is an operand keeps its name: nothing is to be done.
        """
        if result.name not in self._statements:
            return result, self._lines()
        # Nothing refers to it yet: it came last.
        value = Value(f"%{self.op.value_id}", result.type)
        self._statements[value.name] = self._statements.pop(result.name)
        return value, self._lines()

    def _lines(self) -> list[str]:
        statements = self._statements.items()
        return [line for name, text in statements for line in f"{name} = {text}".split("\n")]

    def generic(
        self,
        stem: str,
        inputs: Sequence[tuple[Value, Axes]],
        output: tuple[Value, Axes],
        loops: Sequence[Loop],
        code: Code,
    ) -> Value:
        """A `linalg.generic`. It has one result: how several are written, readers disagree."""
        every = [*inputs, output]
        body = RegionBody([value.type.dtype for value, _ in every])
        result = code(body, *body.arguments)
        maps = ", ".join(map_text(len(loops), axes) for _, axes in every)
        iterators = ", ".join(f'"{loop}"' for loop in loops)
        arguments = ", ".join(f"{a.name}: {element_text(a.dtype)}" for a in body.arguments)
        lines = [
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} "
            f"{operands_text([value for value, _ in inputs], output[0])} {{",
            f"^bb0({arguments}):",
            *(f"  {line}" for line in body.lines),
            f"  linalg.yield {result.name} : {element_text(result.dtype)}",
            f"}} -> {output[0].type_text}",
        ]
        return self.add(stem, "\n".join(lines), output[0].type)

    def add_elementwise(
        self, stem: str, values: Sequence[Value], type_: TensorType, code: Code
    ) -> Value:
        """A function of single elements; the values broadcast to the shape of the result.

        `code` gets the elements without the one that the result had before.
        """
        inputs = [(value, broadcast_axes(value.type.shape, type_.shape)) for value in values]
        output = (self.empty(type_), tuple(range(type_.rank)))
        loops: list[Loop] = ["parallel"] * type_.rank
        return self.generic(stem, inputs, output, loops, lambda b, *a: code(b, *a[:-1]))

    def cast(self, value: Value, dtype: str) -> Value:
        """A tensor in another type of the same kind; itself where it has that already."""
        if value.type.dtype == dtype:
            return value
        type_ = TensorType(dtype, value.type.shape)
        return self.add_elementwise("cast", [value], type_, lambda body, x: body.cast(x, dtype))


def operands_text(inputs: Sequence[Value], output: Value) -> str:
    """The operands of an operation of linalg."""
    names = ", ".join(value.name for value in inputs)
    types = ", ".join(value.type_text for value in inputs)
    return f"ins({names} : {types}) outs({output.name} : {output.type_text})"


@lru_cache
def map_text(loops: int, axes: Axes) -> str:
    """An affine map from loops to the axes of a tensor."""
    dims = ", ".join(f"d{loop}" for loop in range(loops))
    return f"affine_map<({dims}) -> ({', '.join('0' if a is None else f'd{a}' for a in axes)})>"


def broadcast_axes(shape: Shape, target: Shape) -> Axes:
    """The loops that a shape follows where it broadcasts to the shape of all loops."""
    start = len(target) - len(shape)
    return tuple(
        None if dim == 1 and target[axis] != 1 else axis for axis, dim in enumerate(shape, start)
    )
