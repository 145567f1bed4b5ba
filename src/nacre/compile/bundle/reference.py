"""What the legalised module makes of the values that the plan has made so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import CoreOperation, Module, operation
from nacre.core.values import Array, attributes

if TYPE_CHECKING:
    from nacre.compile.bundle.compiled_model import CompiledModel


class Reference:
    """Expected values, each from the plan's own operands."""

    def __init__(
        self, bundle: CompiledModel, arrays: Mapping[str, Array], is_ordered: bool
    ) -> None:
        self._module = bundle.legal
        self._is_ordered = is_ordered
        self._known: dict[int, Array] = {}
        self._places = {op.value_id: place for place, op in enumerate(self._module.operations)}
        for op in self._module.inputs:
            name = str(op.attributes["name"])
            port = next(p for p in bundle.manifest.inputs if p.name == name)
            self._known[op.value_id] = port.to_memory(arrays[name])

    def record(self, value: int, found: Array) -> None:
        """What the plan has made; operations after it are expected to start from there."""
        dtype = self._module.by_id[value].type.element.dtype
        self._known[value] = found.astype(dtype)

    def actual(self, value: int) -> Array:
        """A value that the plan has made, or what follows from such."""
        known = self._known.get(value)
        return self.expected(value) if known is None else known

    def expected(self, value: int) -> Array:
        """A value by the operations between it and what is known."""
        operations: dict[int, CoreOperation] = {}
        given: dict[str, Array] = {}
        pending = [value]
        while pending:
            at = pending.pop()
            if at in operations:
                continue
            op = self._module.by_id[at]
            if at in self._known and at != value:
                name = f"v{at}"
                given[name] = self._known[at]
                operations[at] = CoreOperation(at, "Input", (), attributes({"name": name}), op.type)
            else:
                operations[at] = op
                pending += op.operands
        places = self._places
        order = sorted(
            operations.values(), key=lambda op: (op.opcode != "Input", places[op.value_id])
        )
        # Ids increase down the text.
        numbers = {op.value_id: number for number, op in enumerate(order)}
        renumbered = tuple(
            operation(numbers[op.value_id], op.opcode, tuple(numbers[o] for o in op.operands),
                      op.type, op.attributes)
            for op in order
        )  # fmt: skip
        module = Module(renumbered, (numbers[value],))
        return evaluate(module, given, ordered=self._is_ordered)[0]
