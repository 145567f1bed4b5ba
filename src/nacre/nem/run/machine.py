"""The functional machine: memory, and what each task does to it."""

from __future__ import annotations

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import quoted, safe
from nacre.base.suggest import did_you_mean
from nacre.kernels.call import Run
from nacre.kernels.registry import PRIMITIVES
from nacre.nem.model.program import Task
from nacre.nem.plan.plan import Plan
from nacre.nem.run.actions import Action, copy_action
from nacre.nem.run.backends import BackendError, Backends, ComputeBackend, bound, is_deterministic
from nacre.nem.run.compute import Compute
from nacre.nem.run.findings import Findings
from nacre.nem.run.memory import Memory
from nacre.nem.run.signatures import signatures
from nacre.nem.spec.rules.running import RUN04, RUN09


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
    ) -> None:
        self.plan = plan
        self.memory = memory
        self.findings = findings
        self._backends = backends
        self._ordered = ordered
        self._actions: dict[int, Action] = {}
        self._require_backends()

    def action(self, position: int) -> Action | None:
        """What a task does, bound when it is first asked for; None where no backend can."""
        found = self._actions.get(position)
        if found is None:
            made = self._bound(self.plan.program.task_at[position])
            if made is None:
                return None
            found = self._actions[position] = made
        return found

    def run(self, position: int, row: int) -> bool:
        """Run an instance; False where the run cannot go on."""
        action = self._actions.get(position) or self.action(position)
        return action is not None and action.run(row)

    def _bound(self, task: Task) -> Action | None:
        grid = self.plan.grid_of(task.loops)
        if grid is None:
            raise ValueError("a task that could not be expanded")
        if task.op in ("transfer", "store"):
            return copy_action(task, grid, self.memory)
        made = signatures(task, grid, ordered=self._ordered)
        backend, opcode = self._backend(task), operation(task)
        runs: list[Run] = []
        for index, signature in enumerate(made.distinct):
            if signature.call is None:
                raise ValueError("a compute task without call")
            try:
                runs.append(bound(backend, opcode, signature.call))
            except (BackendError, ValueError) as error:
                row = 0 if made.index is None else made.index.index(index)
                self.findings.report(RUN04, task, grid, row, f"cannot run: {error}")
                return None
        return Compute(task, grid, self.memory, made, runs, self.findings)

    def _backend(self, task: Task) -> ComputeBackend:
        opcode = operation(task)
        return self._backends.get(opcode) or self._backends.get(task.op) or self._backends[""]

    def _require_backends(self) -> None:
        """Every task has a backend that will do, before the first one runs."""
        found = []
        for task in self.plan.program.tasks:
            if task.op in ("transfer", "store"):
                continue
            backend, opcode = self._backend(task), operation(task)
            span = self.plan.program.span(task.node.op)
            name = getattr(backend, "name", type(backend).__name__)
            if not _supports(backend, opcode):
                found.append(self._unsupported(task, name))
            elif _must_be_deterministic(task) and not is_deterministic(backend):
                message = f"backend `{name}` does not declare itself deterministic"
                found.append(RUN09.at(span, message, help="remove `@deterministic`, or choose "
                                      "another backend for this opcode"))  # fmt: skip
        if found:
            raise InputError(found)

    def _unsupported(self, task: Task, backend: str) -> Diagnostic:
        span, opcode = self.plan.program.span(task.node.op), operation(task)
        message = f"backend `{backend}` does not support {quoted(opcode)}"
        help_ = f'give one that does with `set_opcode_backend("{safe(opcode)}", backend)`'
        if task.op != "compute":
            return RUN09.at(span, message, help=help_)
        # The check only notes an operation that it does not know; running it is an error.
        core = [name for name in PRIMITIVES if name.startswith("core.")]
        if opcode.startswith("core."):
            help_ = did_you_mean(opcode, core) or f"there are {', '.join(core)}"
        return Diagnostic("SIG22", "error", message, span, (), help_)


def operation(task: Task) -> str:
    """What a backend is asked for: the opcode, or the `op` of a generic task."""
    if task.op != "compute":
        return task.op
    return str(task.attributes.get("op"))


def _supports(backend: ComputeBackend, opcode: str) -> bool:
    try:
        return bool(backend.supports(opcode))
    except Exception:  # a stranger's code can fail in any way
        return False


def _must_be_deterministic(task: Task) -> bool:
    loops = any(d.name == "deterministic" for loop in task.loops for d in loop.decorators)
    return loops or task.decorator("deterministic") is not None
