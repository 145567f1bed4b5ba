"""Statements in their order, and what the tasks among them wait for."""

from __future__ import annotations

from nacre.compile.placement.stage import is_l1
from nacre.compile.program import Comment, Let, Statement, Wait
from nacre.compile.schedule.order import Order, Touch
from nacre.compile.schedule.task import Task


class TaskWriter:
    """Statements in their order, and what the tasks among them wait for."""

    def __init__(self, *, is_careful: bool = False) -> None:
        self._is_careful = is_careful  # rather waits than counts on many tokens
        self.statements: list[Statement] = []
        self.order = Order()
        self._declared: set[str] = set()
        self.ahead: set[str] = set()

    def comment(self, text: str) -> None:
        """A line for readers."""
        self.statements.append(Comment(text))

    def declare(self, let: Let) -> None:
        """A name, once."""
        if let.name not in self._declared:
            self._declared.add(let.name)
            self.statements.append(let)

    def task(self, task: Task) -> None:
        """A task after everything that it conflicts with."""
        deps = self.order.conflicts(task.touches)
        for statement in task.statements(deps):
            if isinstance(statement, Let):
                self.declare(statement)
            else:
                self.statements.append(statement)
        self.order.add(task.statement.token, deps, task.touches)
        if task.statement.ahead:
            self.ahead.add(task.statement.token)

    def loads(self, touches: list[Touch]) -> tuple[str, ...]:
        """The tasks outside of a loop that bring what is read inside."""
        return self.order.conflicts(touches)

    def settle(self, tokens: set[str]) -> None:
        """Tokens that a loop, which is done, has waited for."""
        self.order.settle(tokens)

    def make_room(self) -> None:
        """Wait for all tasks, but not for what is loaded ahead, where one is careful."""
        if not self._is_careful:
            return
        tokens = tuple(t for t in self.order.open_tokens if t not in self.ahead)
        if tokens:
            self.statements.append(Wait(tokens))
            self.order.settle(tokens)

    def wait_for(self, tokens: list[str]) -> None:
        """Wait for some tasks, those that nothing has waited for yet."""
        is_open = self.order.latest_tasks(tokens)
        if is_open:
            self.statements.append(Wait(is_open))
            self.order.settle(is_open)

    def wait(self, touches: list[Touch]) -> None:
        """Wait for what conflicts with these."""
        tokens = self.order.conflicts(touches)
        if tokens:
            self.statements.append(Wait(tokens))
            self.order.settle(tokens)


class LoopWriter(TaskWriter):
    """The statements of a loop: what tasks wait for lies inside, or was begun before the loop."""

    def __init__(self, around: TaskWriter) -> None:
        super().__init__()
        self._around = around
        self.named: set[str] = set()  # tokens from outside
        self._declared = set(around._declared)

    def loads(self, touches: list[Touch]) -> tuple[str, ...]:
        """The tasks around and in this loop that bring what is read further inside."""
        return (*self._around.loads(touches), *self.order.conflicts(touches))

    def settle(self, tokens: set[str]) -> None:
        """What an inner loop has waited for; what is not of this loop concerns the one around."""
        own = {token for token in tokens if self.order.knows(token)}
        self.order.settle(own)
        self.named |= tokens - own

    def task(self, task: Task) -> None:
        """A task after those of its iteration, and after what was loaded for all tiles."""
        in_l1 = [t for t in task.touches if is_l1(t.buffer)]
        inside = self.order.conflicts(in_l1)
        outer = [t for t in in_l1 if not t.writes]
        before = self._around.loads(outer)
        deps = tuple(dict.fromkeys((*before, *inside)))
        self.named.update(before)
        for statement in task.statements(deps):
            if isinstance(statement, Let):
                self.declare(statement)
            else:
                self.statements.append(statement)
        self.order.add(task.statement.token, inside, in_l1)
