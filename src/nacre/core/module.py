"""A module: a flat, ordered list of operations, its outputs, its state. Values, never changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from nacre.base.source import Source
from nacre.core.operations import CoreOperation, Shape, State, TensorType, operation
from nacre.core.sessions import ModuleSession, make_session
from nacre.core.text.operations import module_text

# Whoever uses modules uses what they are made of.
__all__ = [
    "CoreOperation",
    "Labels",
    "Module",
    "Shape",
    "SourceSpans",
    "State",
    "TensorType",
    "operation",
]


@dataclass(frozen=True)
class SourceSpans:
    """Where the parts of a module stand in the text that it was read from.

    Passes keep the place of what they rewrite: an operation stands where the one did whose id it
    has.
    """

    source: Source
    operations: tuple[tuple[int, int], ...]  # in order
    outputs: tuple[int, int]
    states: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Labels:
    """What a model calls its parts. They are for people: two modules are equal without them."""

    outputs: tuple[str, ...] = ()
    nodes: Mapping[int, str] = field(default_factory=dict)  # by the value that a node became
    # Other nodes whose work a value does too: a norm that is in the weights of a product.
    fused: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    source: str = ""  # the file or the module whose names these are
    # Constants that are parameters: what the model calls each, further names of tied ones behind.
    # Such constants stay apart however equal their elements are, see `without_parameters`.
    parameters: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    # First names of those that training leaves as they are, such as buffers; None where the model
    # does not say.
    fixed: frozenset[str] | None = None

    def names(self, value: int) -> tuple[str, ...]:
        """Every node that a value comes from, that after which it is called first."""
        first = self.nodes.get(value)
        return () if first is None else (first, *self.fused.get(value, ()))

    def join(self, pairs: Iterable[tuple[int, int]]) -> Labels:
        """The same where one value does the work of another too: pairs of the other and the one."""
        fused = dict(self.fused)
        for value, kept in pairs:
            names = (*self.names(kept)[:1], *fused.get(kept, ()))
            more = tuple(name for name in self.names(value) if name not in names)
            if names and more:
                fused[kept] = (*fused.get(kept, ()), *more)
        return replace(self, fused=fused)

    def renumber(self, ids: Mapping[int, int]) -> Labels:
        """The same for values under other numbers; what has none is forgotten.

        Of several values that have become one, that which is named first gives its name.
        """
        nodes: dict[int, str] = {}
        fused: dict[int, tuple[str, ...]] = {}
        for value, name in self.nodes.items():
            if value in ids and ids[value] not in nodes:
                nodes[ids[value]] = name
                if value in self.fused:
                    fused[ids[value]] = self.fused[value]
        parameters = {ids[v]: names for v, names in self.parameters.items() if v in ids}
        return replace(self, nodes=nodes, fused=fused, parameters=parameters)


@dataclass(frozen=True)
class Module:
    """Operations in order, then what the module gives back and what it keeps."""

    operations: tuple[CoreOperation, ...]
    outputs: tuple[int, ...]
    states: tuple[State, ...] = ()
    source_spans: SourceSpans | None = field(default=None, compare=False, repr=False)
    labels: Labels | None = field(default=None, compare=False, repr=False)

    @cached_property
    def by_id(self) -> dict[int, CoreOperation]:
        """Operations by the value that they define; the first where one is defined twice."""
        found: dict[int, CoreOperation] = {}
        for op in self.operations:
            found.setdefault(op.value_id, op)
        return found

    @cached_property
    def inputs(self) -> tuple[CoreOperation, ...]:
        """The Input operations, in order."""
        return tuple(op for op in self.operations if op.opcode == "Input")

    @property
    def input_types(self) -> dict[str, TensorType]:
        """The types of the inputs by name."""
        return {str(op.attributes.get("name")): op.type for op in self.inputs}

    @property
    def output_names(self) -> tuple[str, ...]:
        """What the model calls its outputs, each once; `output0` and so on where it is silent."""
        given = self.labels.outputs if self.labels is not None else ()
        names = [*given, *(f"output{i}" for i in range(len(given), len(self.outputs)))]
        distinct: dict[str, None] = {}
        for index, name in enumerate(names[: len(self.outputs)]):
            while name in distinct:
                name = f"{name}.{index}"
            distinct[name] = None
        return tuple(distinct)

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """The types of the outputs."""
        return tuple(self.by_id[value].type for value in self.outputs)

    @property
    def parameter_names(self) -> Mapping[int, tuple[str, ...]]:
        """Constants that are parameters of the model, with all names of each."""
        return {} if self.labels is None else self.labels.parameters

    def without_parameters(self) -> Module:
        """The same module, in which parameters are constants like any other."""
        if self.labels is None or not self.labels.parameters:
            return self
        return replace(self, labels=replace(self.labels, parameters={}))

    def placed_as(self, source: Module) -> Module:
        """The same module, its operations in the places of those with the same ids in another."""
        if self.source_spans is not None or source.source_spans is None:
            return self
        known_spans = source.source_spans
        values = [op.value_id for op in source.operations]
        known = dict(zip(values, known_spans.operations, strict=False))
        if not all(op.value_id in known for op in self.operations):
            return self
        spans = tuple([known[op.value_id] for op in self.operations])
        return replace(self, source_spans=replace(known_spans, operations=spans))

    def __iter__(self) -> Iterator[CoreOperation]:
        return iter(self.operations)

    def __len__(self) -> int:
        return len(self.operations)

    def __repr__(self) -> str:
        # All operations would be pages; `str` is the text.
        given = ", ".join(f"{name} {type_}" for name, type_ in self.input_types.items())
        known = (self.by_id.get(value) for value in self.outputs)  # nobody has verified it yet
        made = ", ".join(str(op.type) for op in known if op is not None)
        return f"<Module of {len(self)} operations: {given} -> {made}>"

    def __str__(self) -> str:
        return module_text(self.operations, self.outputs, self.states)

    def session(self) -> ModuleSession:
        """A session that keeps the module's state between runs."""
        return make_session(self)
