"""What a run has to say: each kind of finding once for a task and operand, at its first place."""

from __future__ import annotations

from nacre.base.diagnostics import Diagnostic, Related, warnings_as_errors
from nacre.base.excerpt import backquote
from nacre.base.rules import Rule
from nacre.nem.model.program import Program, Task
from nacre.nem.plan.grid import Grid
from nacre.nem.run.sessions.gaps import FindOrigin, unknown_origin
from nacre.nem.run.sessions.naming import iteration_text, task_name
from nacre.nem.syntax import ast


class Findings:
    """Diagnostics of a run in the order in which they came up."""

    def __init__(self, program: Program, *, strict: bool = False) -> None:
        self._program = program
        self._strict = strict
        self._seen: set[tuple[str, int]] = set()
        self.diagnostics: list[Diagnostic] = []
        self.origin: FindOrigin = unknown_origin  # a session knows more

    @property
    def has_error(self) -> bool:
        """Whether the run must stop."""
        return any(d.severity == "error" for d in self.diagnostics)

    def forget_after(self, count: int) -> None:
        """Keep the first so many findings: the steps that led to the others are taken back."""
        for finding in self.diagnostics[count:]:
            self._seen.discard((finding.code, finding.span.start))
        del self.diagnostics[count:]

    def is_known(self, rule: Rule, node: ast.Node) -> bool:
        """Whether this has been reported at that place."""
        return (rule.code, node.start) in self._seen

    def report(
        self,
        rule: Rule,
        task: Task,
        grid: Grid,
        row: int,
        message: str,
        *,
        node: ast.Node | None = None,
        help: str | None = None,
        related: tuple[Related, ...] = (),
    ) -> None:
        """A finding about an instance of a task; `message` goes on after the task's name."""
        blamed = node if node is not None else task.node.token or task.node.op
        if self.is_known(rule, blamed):
            return
        self._seen.add((rule.code, blamed.start))
        debug = f" ({backquote(task.debug_name)})" if task.debug_name is not None else ""
        who = f"`{task_name(self._program, task)}`{debug}{iteration_text(grid, row)}"
        finding = rule.at(
            self._program.span(blamed), f"{who} {message}", help=help, related=related
        )
        self.diagnostics += warnings_as_errors([finding]) if self._strict else [finding]
