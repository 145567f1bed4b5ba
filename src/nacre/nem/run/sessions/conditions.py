"""Where the names of expressions and conditions get their values while a program runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.nem.model.program import Program
from nacre.nem.plan.columns import value_at
from nacre.nem.run.memory.memory import Memory
from nacre.nem.run.memory.regions import Moment, Regions, UnknownNameError
from nacre.nem.run.sessions.references import Reference, Selection, select
from nacre.nem.run.sessions.statistics import Elements
from nacre.nem.run.sessions.value_expressions import (
    Condition,
    Name,
    Node,
    Number,
    Operation,
    Statistic,
    parse_condition,
    parse_expression,
)


@dataclass(frozen=True, eq=False)
class Scope:
    """What expressions can name: the same for a whole session."""

    regions: Regions
    memory: Memory
    numbers: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        program = self.program
        loops = (loop.variable.name for loop in program.loops)
        lets = (let.name for let in program.lets)
        object.__setattr__(self, "numbers", frozenset({*program.constants, *loops, *lets}))

    @property
    def program(self) -> Program:
        """The program of the session."""
        return self.regions.plan.program

    def is_name(self, name: str) -> bool:
        """Whether the program declares a name."""
        return name in self.numbers or name in self.regions.named or name in self.regions.buffers

    def condition(self, text: str, watched: Selection | None = None) -> Condition:
        """A condition, its names looked up; UnknownNameError says what is wrong with it."""
        made = parse_condition(text, self.is_name)
        self._require(made.nodes(), watched)
        return made

    def expression(self, text: str) -> Node:
        """An expression, its names looked up."""
        made = parse_expression(text, self.is_name)
        self._require(made.parts(), None)
        return made

    def _require(self, nodes: Iterable[Node], watched: Selection | None) -> None:
        for node in nodes:
            if isinstance(node, Statistic):
                self._require_region(node, watched)
            elif isinstance(node, Operation) and node.divides_by_zero:
                raise UnknownNameError("an expression divides by zero")
            elif isinstance(node, Name) and not self.is_number(node.reference):
                self._require_element(node.reference)

    def is_number(self, reference: Reference) -> bool:
        """Whether a reference is a loop variable, constant or `let` and no region."""
        return reference.name in self.numbers and not reference.groups

    def _require_region(self, node: Statistic, watched: Selection | None) -> None:
        if node.reference is not None:
            select(node.reference, self.regions)
        elif watched is None:
            raise UnknownNameError(f"`{node.name}` of which region? write `{node.name}(Y)`")

    def _name_hint(self, name: str) -> str:
        """What a name that is not there may mean: of one letter, which loop variables there are."""
        loops = list(dict.fromkeys(loop.variable.name for loop in self.program.loops))
        known = [*loops, *sorted(self.numbers - set(loops)), *self.regions.named]
        known += [buffer for buffer in self.regions.buffers if buffer not in known]
        is_near = len(name) > 1 or name.swapcase() in known
        if is_near and (hint := did_you_mean(name, known)):
            return hint
        if not loops:
            return f"there are {', '.join(known[:8]) or 'none'}"
        return f"loop variables are {', '.join(f'`{loop}`' for loop in loops[:8])}"

    def _require_element(self, reference: Reference) -> None:
        name = reference.name
        try:
            selection = select(reference, self.regions, one=True)
        except UnknownNameError:
            if self.is_name(name) and name not in self.numbers:
                raise
            hint = self._name_hint(name)
            raise UnknownNameError(
                f"no loop variable or constant {backquote(name)}, nor a region; {hint}"
            ) from None
        count = selection.values_count
        if count != 1:
            first = ", ".join("0" * max(1, len(selection.shape)))
            raise UnknownNameError(
                f"{backquote(reference.text)} has {count} elements; name one, such as "
                f"`{name}[{first}]`, or ask for `max({name})`"
            )


@dataclass(frozen=True, eq=False)
class CurrentValues:
    """The values that names have at a moment: in the iteration of a step."""

    scope: Scope
    step: int | None
    watched: Selection | None = None

    def is_number(self, reference: Reference) -> bool:
        """Whether a reference is a loop variable, constant or `let` of a number."""
        return self.scope.is_number(reference)

    def number(self, name: str) -> Number | None:
        """A loop variable of the step, a constant, or a `let` of an integer in its iteration."""
        constant = self.scope.program.constants.get(name)
        if constant is not None:
            return constant
        if self.step is None:
            return self._value_of_let(name, ())
        steps = self.scope.regions.steps
        statement = steps.statement(self.step)
        for loop, value in zip(statement.loops, steps.iteration(self.step), strict=True):
            if loop.variable.name == name:
                return value
        return self._value_of_let(name, tuple(loop.position for loop in statement.loops))

    def _value_of_let(self, name: str, around: tuple[int, ...]) -> Number | None:
        for let in self.scope.program.lets:
            let_loops = tuple(loop.position for loop in let.loops)
            if let.name != name or around[: len(let_loops)] != let_loops:
                continue
            if isinstance(let.value, int | float):
                return let.value
            grid = self.scope.regions.plan.grid_of(let.loops)
            if grid is None or self.step is None:
                continue
            steps = self.scope.regions.steps
            statement = steps.statement(self.step)
            row = steps.grid(statement).row_in(grid, steps.row[self.step : self.step + 1])[0]
            return value_at(grid.at(int(row)).evaluate(let.value), 0)
        return None

    def elements(self, reference: Reference | None, *, one: bool) -> Elements | None:
        """The elements that somebody wrote of a region, or of the one that is watched."""
        regions = self.scope.regions
        if reference is None:
            selection = self.watched
        else:
            selection = select(reference, regions, Moment(regions.latest, self.step), one=one)
        if selection is None:
            return None
        storage = self.scope.memory.storage(selection.located.buffer)
        return Elements(selection.values(storage)[selection.written_mask(storage)], selection.elem)
