"""HAZ: accesses to common bytes that nothing orders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.rules import Check, declare, rule
from nacre.base.term_columns import uses_remainder
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.rules.ordering.remedies import Remedies
from nacre.nem.model.program import Task
from nacre.nem.plan.conflicts import Conflict
from nacre.nem.plan.explain import explanation
from nacre.nem.plan.plan import Access
from nacre.nem.spec.limits import MAX_DIAGNOSTICS

_HAZARDS = "Hazards and Aliasing Rules"


def code_of(conflict: Conflict) -> str:
    """Which rule a conflict breaks."""
    if conflict.loop is not None:
        return "HAZ06" if _is_ring(conflict.first) or _is_ring(conflict.second) else "HAZ05"
    if not conflict.second.is_write:
        return "HAZ01"
    return "HAZ03" if conflict.first.is_write else "HAZ02"


def _is_ring(access: Access) -> bool:
    region = access.operand.region
    return region is not None and uses_remainder(region.offset)


def _report_conflicts(facts: ProgramFacts, check: Check[ProgramFacts]) -> Iterator[Diagnostic]:
    """One diagnostic for every pair of statements that breaks the rule."""
    seen: set[frozenset[int]] = set()
    remedies = Remedies(facts.conflicts, facts.program.task_at)
    for conflict in facts.conflicts:
        pair = frozenset({conflict.first.position, conflict.second.position})
        if len(seen) > MAX_DIAGNOSTICS:  # nobody reads more, and each takes time to explain
            return
        if code_of(conflict) == check.code and pair not in seen:
            seen.add(pair)
            yield _explain(facts, check, conflict, remedies.remedied_by(conflict))


def _explain(
    facts: ProgramFacts, check: Check[ProgramFacts], conflict: Conflict, cause: Conflict | None
) -> Diagnostic:
    first, second = conflict.first, conflict.second
    earlier = f"{_task_words(first.task)}{_iteration(first, conflict.first_row)}"
    later = f"{_task_words(second.task)}{_iteration(second, conflict.second_row)}"
    first_span = facts.span(first.operand.node)
    related = (Related(first_span, f"{_task_words(first.task)} {_verb(first)} them here"),)
    diagnostic = check.at(
        facts.span(second.operand.node),
        f"{later} {_verb(second)} bytes {conflict.low}..{conflict.high - 1} of "
        f"`{_buffer(second)}` that {earlier} {_verb(first)}; {_why(conflict)}",
        related=related if first.operand is not second.operand else (),
        help=_mend(conflict) if cause is None else _fix_there(cause),
    )
    reasons = explanation(facts.program, conflict)
    return replace(diagnostic, data={**witness(conflict), "explanation": reasons})


def witness(conflict: Conflict) -> dict[str, Any]:
    """The pair of instances as data: enough to replay them in both orders."""
    iterations = conflict.iterations
    return {
        "witness": [
            {
                "task": access.task.name,
                "position": access.position,
                "op": access.task.op,
                "iteration": list(iteration),
                "access": access.operand.access,
            }
            for access, iteration in zip((conflict.first, conflict.second), iterations, strict=True)
        ],
        "buffer": _buffer(conflict.first),
        "bytes": [conflict.low, conflict.high],
    }


def _buffer(access: Access) -> str:
    region = access.operand.region
    return region.buffer.name if region is not None and region.buffer is not None else "?"


def _task_words(task: Task) -> str:
    return f"`{task.token}`" if task.token is not None else f"this `{task.op}`"


def _iteration(access: Access, row: int) -> str:
    loops = access.grid.loops
    values = access.grid.iteration(row)
    pairs = [f"{loop.variable.name}={value}" for loop, value in zip(loops, values, strict=True)]
    return f" ({', '.join(pairs)})" if pairs else ""


def _verb(access: Access) -> str:
    return "writes" if access.is_write else "reads"


def _why(conflict: Conflict) -> str:
    loop = conflict.loop
    if loop is not None:
        return (
            f"`@max_in_flight({loop.window})` lets these iterations of loop "
            f"`{loop.variable.name}` overlap"
        )
    return "no `deps`, `wait` or `endloop` orders the two"


def _fix_there(cause: Conflict) -> str:
    first, second = _task_words(cause.first.task), _task_words(cause.second.task)
    return (
        f"nothing here: once {second} waits for {first}, which is reported too, "
        "these two are ordered as well"
    )


def _mend(conflict: Conflict) -> str:
    first, second, loop = conflict.first.task, conflict.second.task, conflict.loop
    if loop is None:
        if first.token is None:
            return f"give the `{first.op}` a token and name it in `deps` of {_task_words(second)}"
        return (
            f"add `{first.token}` to the `deps` of {_task_words(second)}, or `wait({first.token})`"
        )
    if code_of(conflict) == "HAZ06":
        return f"use a ring of at least {loop.window} slots, or a smaller `@max_in_flight`"
    name = loop.variable.name
    return (
        f"do it once before the loop, give iterations slots of their own "
        f"(`({name} mod {loop.window}) * size`), or take `@max_in_flight` away"
    )


@rule("HAZ01", "read-after-write", f"{_HAZARDS} 1")
def read_after_write(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task reads bytes that an earlier task writes, and nothing makes it wait.

    Tasks are asynchronous: their order in the text orders nothing.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
          buffer B : L1 (size=64)
          buffer C : L2 (size=64)
          t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64))
        - s = store.async(dst=region(C, 0, 64), src=region(B, 0, 64))
        + s = store.async(dst=region(C, 0, 64), src=region(B, 0, 64), deps=[t])
    """
    yield from _report_conflicts(facts, read_after_write)


@rule("HAZ02", "write-after-read", f"{_HAZARDS} 1")
def write_after_read(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task overwrites bytes that an earlier task may still be reading.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
          buffer B : L1 (size=64)
          buffer C : L2 (size=64)
          l = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))
          s = store.async(dst=region(C, 0, 64), src=region(B, 0, 64))
        - t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64))
        + t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64), deps=[s])
    """
    yield from _report_conflicts(facts, write_after_read)


@rule("HAZ03", "write-after-write", f"{_HAZARDS} 1")
def write_after_write(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Two tasks write the same bytes, and nothing says which comes last.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
          buffer B : L1 (size=64)
          t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64))
        - u = transfer.async(dst=region(B, 32, 32), src=region(A, 0, 32))
        + u = transfer.async(dst=region(B, 32, 32), src=region(A, 0, 32), deps=[t])
    """
    yield from _report_conflicts(facts, write_after_write)


@rule("HAZ05", "iterations-share-bytes", f"{_HAZARDS} 3")
def iterations_share_bytes(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Iterations of a loop that may overlap use the same bytes, and one of them writes.

    Bad (-) and good (+):

          buffer A : L2 (size=256)
          buffer B : L1 (size=64)
        - loop i in [0..3] @max_in_flight(2):
        + loop i in [0..3]:
              t = transfer.async(dst=region(B, 0, 64), src=region(A, i * 64, 64))
          endloop
    """
    yield from _report_conflicts(facts, iterations_share_bytes)


@rule("HAZ06", "ring-smaller-than-window", f"{_HAZARDS} 3")
def ring_smaller_than_window(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A ring of slots has fewer slots than iterations may be in flight.

    Bad (-) and good (+):

          buffer A : L2 (size=256)
        - buffer B : L1 (size=128)
        + buffer B : L1 (size=192)
          loop i in [0..3] @max_in_flight(3):
        -     t = transfer.async(dst=region(B, (i mod 2) * 64, 64), src=region(A, i * 64, 64))
        +     t = transfer.async(dst=region(B, (i mod 3) * 64, 64), src=region(A, i * 64, 64))
          endloop
    """
    yield from _report_conflicts(facts, ring_smaller_than_window)


declare(
    "HAZ07",
    "bytes-not-names",
    f"{_HAZARDS} 1",
    """
    Accesses are compared by the bytes that they touch, whatever region or name they go through.

    No diagnostic carries this code.
    """,
    behaviour=True,
)
