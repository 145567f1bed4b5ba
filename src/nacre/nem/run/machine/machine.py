"""The functional machine: memory, and what each task does to it."""

from __future__ import annotations

import json
from dataclasses import replace

from nacre.base.diagnostics import Diagnostic, InputError, Related
from nacre.base.excerpt import backquote, safe
from nacre.base.hints import setting, text_for_reader
from nacre.base.suggest import did_you_mean
from nacre.kernels.interface.call import Run
from nacre.kernels.registry import PRIMITIVES
from nacre.nem.model.program import Task
from nacre.nem.plan.decompression import compressed_source
from nacre.nem.plan.grid import TOP
from nacre.nem.plan.plan import Plan
from nacre.nem.run.machine.actions import (
    Action,
    BoundsCheckedAction,
    StreamedAction,
    copy_action,
)
from nacre.nem.run.machine.backends import (
    BackendError,
    Backends,
    ComputeBackend,
    bind_opcode,
    is_deterministic,
    supports,
)
from nacre.nem.run.machine.compute import Compute
from nacre.nem.run.machine.decompression import DecompressingTransfer
from nacre.nem.run.machine.findings import Findings
from nacre.nem.run.machine.signatures import signatures
from nacre.nem.run.memory.memory import Memory
from nacre.nem.spec.rules.running import RUN04, RUN06, RUN09, RUN12

_SHOWN_ALLOWED = 8

_UNORDERED = f"run without {setting('`--ordered`', '`ordered=True`')}"


class Machine:
    """Runs instances of tasks, in whatever order they come."""

    def __init__(
        self,
        plan: Plan,
        memory: Memory,
        backends: Backends,
        findings: Findings,
        *,
        ordered: bool = False,
        allowed: tuple[Diagnostic, ...] = (),
    ) -> None:
        self.plan = plan
        self.memory = memory
        self.findings = findings
        self._backends = backends
        self._ordered = ordered
        self._allowed = allowed
        self._actions: dict[int, Action] = {}
        self._require_backends()

    def action(self, position: int) -> Action | None:
        """What a task does, bound when it is first asked for; None where no backend can."""
        action = self._actions.get(position)
        if action is None:
            bound = self._bind(self.plan.program.task_at[position])
            if bound is None:
                return None
            bound = BoundsCheckedAction(bound) if self._allowed else self._streamed(bound)
            action = self._actions[position] = bound
        return action

    def _streamed(self, action: Action) -> Action:
        """The same, where its output is never written to memory."""
        for operand in action.task.operands:
            if operand.access == "write" and self.memory.is_streamed(operand):
                footprint = self.plan.footprint_of(action.task, operand)
                buffer = operand.region.buffer if operand.region is not None else None
                if footprint is None or buffer is None:
                    raise ValueError("a region of a program with errors")
                return StreamedAction(action, footprint, self.memory.storage(buffer))
        return action

    def run(self, position: int, row: int) -> bool:
        """Run an instance; False where the run cannot go on."""
        action = self._actions.get(position) or self.action(position)
        return action is not None and action.run(row)

    def explain(self, position: int, row: int, error: Exception) -> None:
        """Report an instance that raised; raise again what is a mistake of ours.

        A program with errors that were allowed through may have no meaning for the machine.
        """
        task = self.plan.program.task_at[position]
        grid = self.plan.grid_of(task.loops) or TOP
        if isinstance(error, MemoryError):
            needed = f"its operands take {_operand_bytes(self._actions.get(position), row)} bytes"
            why = f"; {str(error)[:1].lower()}{str(error)[1:]}" if str(error) else ""
            message = f"needs more memory than this machine has left: {needed}{why}"
            self.findings.report(RUN06, task, grid, row, message)
        elif self._allowed:
            finding = unrunnable_finding(self._allowed, f"`{task.op}` cannot run: {error}")
            span = self.plan.program.span(task.node.op)
            self.findings.diagnostics.append(replace(finding, span=span))
        else:
            raise error

    def _bind(self, task: Task) -> Action | None:
        grid = self.plan.grid_of(task.loops)
        if grid is None:
            raise ValueError("a task that could not be expanded")
        if compressed_source(task) is not None:
            return DecompressingTransfer(task, grid, self.memory, self.findings)
        if task.op in ("transfer", "store"):
            return copy_action(task, grid, self.memory)
        task_signatures = signatures(task, grid, ordered=self._is_ordered(task))
        backend, opcode = self._backend(task), operation_name(task)
        runs: list[Run] = []
        for index, signature in enumerate(task_signatures.distinct):
            if signature.call is None:
                raise ValueError("a compute task without call")
            try:
                runs.append(bind_opcode(backend, opcode, signature.call))
            except (BackendError, ValueError) as error:
                row = 0 if task_signatures.index is None else task_signatures.index.index(index)
                self.findings.report(RUN04, task, grid, row, f"cannot run: {error}")
                return None
        return Compute(task, grid, self.memory, task_signatures, runs, self.findings)

    def _backend(self, task: Task) -> ComputeBackend:
        opcode = operation_name(task)
        return self._backends.get(opcode) or self._backends.get(task.op) or self._backends[""]

    def _require_backends(self) -> None:
        """Every task has a backend that will do, before the first one runs."""
        findings = []
        for task in self.plan.program.tasks:
            if task.op in ("transfer", "store"):
                continue
            backend, opcode = self._backend(task), operation_name(task)
            span = self.plan.program.span(task.node.op)
            name = getattr(backend, "name", type(backend).__name__)
            if not supports(backend, opcode):
                findings.append(self._unsupported_finding(task, name))
            elif self._is_ordered(task) and not is_deterministic(backend):
                message = f"backend `{name}` does not declare itself deterministic"
                asked = _UNORDERED if self._ordered else "remove `@deterministic`"
                help_ = f"{asked}, or choose another backend for this opcode"
                findings.append(RUN09.at(span, message, help=help_))
        if findings:
            raise InputError(findings)

    def _is_ordered(self, task: Task) -> bool:
        """Whether floats are accumulated in a fixed order: asked for here, or for everything."""
        return self._ordered or must_be_deterministic(task)

    def _unsupported_finding(self, task: Task, backend: str) -> Diagnostic:
        span, opcode = self.plan.program.span(task.node.op), operation_name(task)
        message = f"backend `{backend}` does not support {backquote(opcode)}"
        call = f"set_opcode_backend({json.dumps(opcode, ensure_ascii=False)}, backend)"
        help_ = f"give one that does with {setting('`--backend NAME`', f'`{safe(call)}`')}"
        if task.op != "compute":
            return RUN09.at(span, message, help=help_)
        # The check only notes an operation that it does not know; running it is an error.
        core = [name for name in PRIMITIVES if name.startswith("core.")]
        if opcode.startswith("core."):
            help_ = did_you_mean(opcode, core) or f"there are {', '.join(core)}"
        return Diagnostic("SIG22", "error", message, span, (), text_for_reader(help_))


def unrunnable_finding(allowed: tuple[Diagnostic, ...], why: str) -> Diagnostic:
    """What was allowed through leaves nothing that could run; related are those errors."""
    codes = ", ".join(dict.fromkeys(d.code for d in allowed))
    related = tuple(Related(d.span, f"{d.code}: {d.message}") for d in allowed[:_SHOWN_ALLOWED])
    help_ = f"mend what {codes} says: allowing it leaves the machine without a meaning"
    return RUN12.at(allowed[0].span, safe(why), related=related, help=help_)


def _operand_bytes(action: Action | None, row: int) -> int:
    if action is None:
        return 0
    return sum(high - low for _, low, high in (*action.reads(row), *action.writes(row)))


def operation_name(task: Task) -> str:
    """What a backend is asked for: the opcode, or the `op` of a generic task."""
    if task.op != "compute":
        return task.op
    return str(task.attributes.get("op"))


def must_be_deterministic(task: Task) -> bool:
    """Whether `@deterministic` stands on a task or on a loop around it."""
    for loop in task.loops:
        for decorator in loop.decorators:
            if decorator.name == "deterministic":
                return True
    return task.decorator("deterministic") is not None
