"""What fusing does, as text for terminals and as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nacre.nem.model.program import Program, Task
from nacre.nem.plan.fusion.chains import Chain, Fusion
from nacre.nem.plan.fusion.conditions import REASONS, Refusal
from nacre.nem.run.sessions.naming import task_name
from nacre.nem.run.sessions.tables import align_table
from nacre.nem.run.timing.fused import FusedResult

_SHOWN_CHAINS = 20


def fused_text(result: FusedResult) -> str:
    """Cycles without and with, the chains, and why other pairs are not fused."""
    program = result.before.timeline.steps.plan.program
    parts = [_summary(result), "", _cycles_table(result)]
    if result.chains:
        parts += ["", _chain_table(result, program)]
    if result.refusals:
        parts += ["", refusal_table(result.refusals, program)]
    return "\n".join(parts)


def _summary(result: FusedResult) -> str:
    was, now = result.before.cycles, result.after.cycles
    if not result.chains:
        return f"nothing is fused; the run takes {was} cycles"
    times = f", {was / now:.2f}x as fast" if now else ""
    return f"fused: {count_text(result.fusion)}; {was} cycles become {now}{times}"


def count_text(fusion: Fusion) -> str:
    """How many chains there are, and how often they run."""
    chains, times = len(fusion.chains), sum(chain.times for chain in fusion.chains)
    run = f"run{'s' if chains == 1 else ''} {times} time{'' if times == 1 else 's'}"
    return f"{chains} chain{'' if chains == 1 else 's'} that {run}"


def _cycles_table(result: FusedResult) -> str:
    rows: list[tuple[object, ...]] = [
        ("cycles", result.before.cycles, result.after.cycles, result.saved)
    ]
    for unit in dict.fromkeys([*result.before.cycles_by_unit, *result.after.cycles_by_unit]):
        was = result.before.cycles_by_unit.get(unit, 0)
        now = result.after.cycles_by_unit.get(unit, 0)
        rows.append((f"busy: {unit}", was, now, ""))  # a chain holds units for longer
    return align_table(("", "without", "with", "saved"), rows)


def _chain_table(result: FusedResult, program: Program) -> str:
    shown = result.chains[:_SHOWN_CHAINS]
    rows = []
    for chain in shown:
        cycles = result.cycles_of(chain)
        name = " -> ".join(task_name(program, task) for task in chain.tasks)
        lines = "-".join(str(_line(program, task)) for task in (chain.head, chain.tasks[-1]))
        rows.append((name, lines, _opcodes(chain), chain.times, cycles.alone, cycles.chained))
    table = align_table(("Chain", "Lines", "Opcodes", "Times", "Alone", "Chained"), rows)
    left = len(result.chains) - len(shown)
    return table + (f"\nand {left} more chain{'' if left == 1 else 's'}" if left else "")


def _opcodes(chain: Chain) -> str:
    return " + ".join(task.op for task in chain.tasks)


def refusal_table(refusals: Sequence[Refusal], program: Program) -> str:
    """Why pairs are not fused: a reason a row, with the first pair that it is about."""
    rows = [
        (len(pairs), pair_text(pairs[0], program), _line(program, pairs[0].reader), reason)
        for reason, pairs in _by_reason(refusals)
    ]
    return align_table(("Not fused", "First pair", "Line", "Because"), rows)


def pair_text(refusal: Refusal, program: Program) -> str:
    """The tasks of a pair."""
    return f"{task_name(program, refusal.writer)} -> {task_name(program, refusal.reader)}"


def _by_reason(refusals: Sequence[Refusal]) -> list[tuple[str, list[Refusal]]]:
    """Refusals by what is wrong, the most frequent first; of units, by which they are."""
    groups: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in refusals:
        detail = refusal.detail if refusal.reason == "units" else ""
        groups.setdefault((refusal.reason, detail), []).append(refusal)
    ranked = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [(because(pairs[0]), pairs) for _, pairs in ranked]


def because(refusal: Refusal) -> str:
    """The reason in a sentence, with what it is about here."""
    sentence = REASONS[refusal.reason]
    return f"{sentence}: {refusal.detail}" if refusal.detail else sentence


def _line(program: Program, task: Task) -> int:
    return program.span(task.node).location.line


def fused_json(result: FusedResult) -> dict[str, Any]:
    """The same as plain values, every chain and every pair."""
    program = result.before.timeline.steps.plan.program
    return {
        "cycles": {
            "without": result.before.cycles,
            "with": result.after.cycles,
            "saved": result.saved,
        },
        **fusion_json(result.fusion, program, result),
    }


def fusion_json(
    fusion: Fusion, program: Program, timed: FusedResult | None = None
) -> dict[str, Any]:
    """Chains and refusals as plain values; of a timed one with the cycles of each chain."""
    return {
        "chains": [_chain_json(chain, program, timed) for chain in fusion.chains],
        "not_fused": [
            {
                "writer": task_name(program, refusal.writer),
                "reader": task_name(program, refusal.reader),
                "line": _line(program, refusal.reader),
                "reason": refusal.reason,
                "because": because(refusal),
            }
            for refusal in fusion.refusals
        ],
    }


def _chain_json(chain: Chain, program: Program, timed: FusedResult | None) -> dict[str, Any]:
    cycles = timed.cycles_of(chain) if timed is not None else None
    return {
        "tasks": [task_name(program, task) for task in chain.tasks],
        "opcodes": [task.op for task in chain.tasks],
        "lines": [_line(program, task) for task in chain.tasks],
        "times": chain.times,
        **({"alone": cycles.alone, "chained": cycles.chained} if cycles is not None else {}),
    }
