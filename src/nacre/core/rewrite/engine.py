"""How rules are applied: walks down a module that put something else in the place of operations.

A rule looks at one operation and at those above it, which the walk has been at already. Rules that
keep bits also keep the numbers of values: `simplify` is one walk, in which every operation is
rewritten until nothing applies. Other rules may add what they like: `apply_once` builds the module
anew, and `apply_until_stable` does so until a walk finds nothing more to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from nacre.base.diagnostics import InternalError
from nacre.core.builder import Builder
from nacre.core.module import CoreOperation, Module, State
from nacre.core.rewrite.dead_code import dead_code
from nacre.core.rewrite.graph import Graph, count_uses
from nacre.core.rewrite.labels import carry_labels, complete_labels, join_labels
from nacre.core.rewrite.site import Rewrite, RewriteSite, Rules
from nacre.core.values import Array

_MOST_WALKS = 40  # down a module
_MOST_STEPS = 1000  # of one operation; each of them leaves less to do


def apply_once(module: Module, rules: Rules) -> Module:
    """A module with rules applied at every operation, top to bottom; what is dead goes."""
    return _walk(module, rules).module()


def apply_until_stable(module: Module, rules: Rules) -> Module:
    """The module with rules applied in walk after walk, until none applies.

    After each walk, what no rule has labelled takes the label of whoever uses it.
    """
    for _ in range(_MOST_WALKS):
        graph = _walk(module, rules)
        if not graph.applied:
            return module
        module = complete_labels(graph.module())
    raise InternalError(f"rules still apply after {_MOST_WALKS} walks: {sorted(graph.applied)}")


def simplify(module: Module, rules: Rules) -> Module:
    """The module with each operation rewritten until no rule applies; values keep their numbers."""
    graph = _EditedGraph(module)
    for op in module.operations:
        graph.take(op, rules)
    return graph.module()


def _walk(module: Module, rules: Rules) -> _RebuiltGraph:
    graph = _RebuiltGraph(module)
    for index, op in enumerate(module.operations):
        graph.take(index, op, rules.get(op.opcode, ()))
    return graph


class _RebuiltGraph(Graph):
    """A module built anew: its values are numbered, and uses counted, from the start."""

    def __init__(self, source: Module) -> None:
        super().__init__(source)
        self._builder = Builder()
        self._uses: Counter[int] = Counter()
        self._counted = count_uses(source)
        self._origins: list[int] = []  # for each new operation, the place of the old one
        self.applied: set[str] = set()  # opcodes at which a rule did something

    def is_single(self, value: int) -> bool:
        return self._uses[value] <= 1

    def operation(self, value: int) -> CoreOperation:
        return self._builder.operation(value)

    def add(self, opcode: str, *operands: int, **attributes: object) -> int:
        return self._builder.add(opcode, *operands, **attributes)

    def literal(self, array: Array, dtype: str) -> int:
        return self._builder.constant(array, dtype, copy=False)

    def replace(self, op: CoreOperation) -> int:
        return self._builder.copy(op, op.operands)

    def take(self, index: int, op: CoreOperation, rewrites: Sequence[Rewrite]) -> None:
        """One operation of the source."""
        operands = tuple([self.ids[o] for o in op.operands])
        site = RewriteSite(self, _with_operands(op, operands))
        replacement: int | None = None
        for rewrite in rewrites:
            replacement = rewrite(site)
            if replacement is not None and self._builder.type_of(replacement) == op.type:
                self.applied.add(op.opcode)
                break
            replacement = None  # a constant spread the result of what the rule stands for
        if replacement is None:
            replacement = self._builder.copy(op, operands)
        self.ids[op.value_id] = replacement
        self._uses[replacement] += self._counted[op.value_id]
        self._origins += [index] * (self._builder.count - len(self._origins))

    def module(self) -> Module:
        """The result; what is dead goes."""
        source, ids = self.source, self.ids
        for state in source.states:
            self._builder.state(state.name, ids[state.output], ids[state.initial])
        rebuilt = self._builder.module(*(ids[value] for value in source.outputs))
        spans = source.source_spans
        if spans is not None:
            spans = replace(spans, operations=tuple([spans.operations[at] for at in self._origins]))
            rebuilt = replace(rebuilt, source_spans=spans)
        kept = dead_code(rebuilt).placed_as(rebuilt)
        if source.labels is None:
            return kept
        at = dict(zip((op.value_id for op in rebuilt.operations), self._origins, strict=True))
        return replace(kept, labels=carry_labels(source, kept, at, ids))


class _EditedGraph(Graph):
    """A module whose values keep their numbers: an operation changes, or another does its work."""

    def __init__(self, source: Module) -> None:
        super().__init__(source)
        self._definitions: dict[int, CoreOperation] = {}
        self._instead: CoreOperation | None = None  # of the operation at hand
        self._is_changed = False

    @cached_property
    def _uses(self) -> Mapping[int, int]:
        return count_uses(self.source)

    def is_single(self, value: int) -> bool:
        return self._uses[value] <= 1

    def operation(self, value: int) -> CoreOperation:
        return self._definitions[value]

    def add(self, opcode: str, *operands: int, **attributes: object) -> int:
        raise InternalError(f"a rule that keeps numbers adds a `{opcode}`")

    def literal(self, array: Array, dtype: str) -> int:
        raise InternalError("a rule that keeps numbers adds a constant")

    def replace(self, op: CoreOperation) -> int:
        self._instead = op
        return op.value_id

    def take(self, op: CoreOperation, rules: Rules) -> None:
        """One operation of the source."""
        here, value, replacement = op, op.value_id, None
        for operand in op.operands:
            if operand in self.ids:
                here = _with_operands(op, tuple([self.ids.get(o, o) for o in op.operands]))
                break
        for _ in range(_MOST_STEPS):
            rewrites = rules.get(here.opcode)
            replacement = (
                None if rewrites is None else _first_rewrite(RewriteSite(self, here), rewrites)
            )
            if replacement != value:
                break
            assert self._instead is not None
            here = self._instead
        else:
            raise InternalError(f"rules still apply to `{here.opcode}` %{value}")
        if replacement is None:
            self._definitions[value] = here
            self._is_changed = self._is_changed or here is not op
        else:
            self.ids[value] = replacement

    def module(self) -> Module:
        """The result, outputs and states under what they have become."""
        source, ids = self.source, self.ids
        if not ids and not self._is_changed:
            return source
        outputs = tuple(ids.get(value, value) for value in source.outputs)
        states = tuple(
            State(s.name, ids.get(s.output, s.output), ids.get(s.initial, s.initial))
            for s in source.states
        )
        labels = join_labels(source, ids)
        if labels is not None and self.parameters:
            labels = replace(labels, parameters=self.parameters)
        return Module(tuple(self._definitions.values()), outputs, states, labels=labels)


def _with_operands(op: CoreOperation, operands: tuple[int, ...]) -> CoreOperation:
    return CoreOperation(op.value_id, op.opcode, operands, op.attributes, op.type)


def _first_rewrite(site: RewriteSite, rewrites: Sequence[Rewrite]) -> int | None:
    for rewrite in rewrites:
        found = rewrite(site)
        if found is not None:
            return found
    return None
