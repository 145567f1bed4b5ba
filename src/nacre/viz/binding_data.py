"""What the page about a binding is made of: plain values, tasks as packed columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nacre.bind.measure.bank_map import BankMap
from nacre.bind.measure.measured import MeasuredBinding
from nacre.bind.report import BindReport
from nacre.tcb.image import Block
from nacre.tcb.text.terms import term_text
from nacre.tcb.text.written import tag_text
from nacre.tcbcheck.proof import Proof
from nacre.viz.binding_decisions import decision_rows
from nacre.viz.binding_runs import BoundRuns
from nacre.viz.packing import pack_column, pack_list, pack_words
from nacre.viz.report_data import program_text

FORMAT = "nacre-binding-1"
MOST_CHAINS = 2_000
MOST_PLACES = 200  # of one reason why pairs are not fused
MOST_BUFFERS = 1_000  # of a memory
MOST_FINDINGS = 50


def binding_data(measured: MeasuredBinding, proof: Proof | None) -> dict[str, Any]:
    """Everything that the page shows, as values for JSON."""
    report = BindReport(measured.bound, measured.request.plan.program)
    facts, runs = report.as_json(), BoundRuns(measured)
    found = measured.as_json()
    return {
        "format": FORMAT,
        **{key: facts[key] for key in ("program", "device", "uarch", "blocks", "repeats",
                                       "streams", "tags", "serialised")},
        "uarch_hash": found["uarch_hash"],
        "figures": [list(pair) for pair in measured.bound.image.machine.figures],
        "run_cycles": found["cycles"],
        "cycles": max(found["cycles"]["program"], found["cycles"]["image"]),
        "causes": found["causes"],
        "stalls": found["stalls"],
        "proof": None if proof is None else _proof_json(proof),
        **program_text(runs.timeline, runs.tasks),
        "task_count": runs.count,
        "tasks": runs.packed("program"),
        "image_tasks": runs.packed("image"),
        "units": runs.unit_rows(),
        "sums": runs.sums(),
        "placed_blocks": _placed_blocks(measured, runs),
        "memories": [_memory(one, facts["banks"]) for one in measured.banks],
        "chains": facts["chains"][:MOST_CHAINS],
        "chain_count": len(facts["chains"]),
        "conversions": facts["conversions"][:MOST_CHAINS],
        "not_fused": _not_fused(facts["not_fused"]),
        "compressed": found["compressed"],
        "weights": facts.get("weights"),
        "decisions": decision_rows(measured, facts, runs.tasks),
    }  # fmt: skip


def _proof_json(proof: Proof) -> dict[str, Any]:
    """Without the seconds it took: the same image makes the same page."""
    found = proof.as_json()
    return {"is_proved": found["is_proved"], "findings": found["findings"][:MOST_FINDINGS]}


def _placed_blocks(measured: MeasuredBinding, runs: BoundRuns) -> dict[str, Any]:
    """By statement: what its blocks wait for and signal, and where they come from and go to."""
    by_position: dict[int, list[Block]] = {}
    for stream in measured.bound.image.streams:
        for block, _ in stream.blocks():
            if block.kind == "task":
                by_position.setdefault(block.position, []).append(block)
    layers = {origin.position: origin.layer or "" for origin in measured.bound.image.origins}
    found = [by_position.get(task.position, []) for task in runs.tasks]
    return {
        "count": pack_list(len(blocks) for blocks in found),
        "waits": pack_words(_join_texts(map(_waits_text, blocks)) for blocks in found),
        "signal": pack_words(_join_texts(map(_signal_text, blocks)) for blocks in found),
        "chained": pack_words(_join_texts(map(_chain_text, blocks)) for blocks in found),
        "format": pack_words(_join_texts(block.format for block in blocks) for blocks in found),
        "merged_into": pack_column(runs.merged_into),
        "layer": pack_words(layers.get(task.position, "") for task in runs.tasks),
    }


def _join_texts(texts: Iterable[str]) -> str:
    """Texts of the blocks of a statement; several where its loop became several repeats."""
    return "; or ".join(dict.fromkeys(text for text in texts if text))


def _waits_text(block: Block) -> str:
    return ", ".join(f"{tag_text(wait.tag)} \u2265 {term_text(wait.value)}" for wait in block.waits)


def _signal_text(block: Block) -> str:
    return "" if block.signal is None else tag_text(block.signal)


def _chain_text(block: Block) -> str:
    return "streams into the next block" if block.is_chained else ""


def _memory(one: BankMap, choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
    buffers = sorted(one.buffers, key=lambda buffer: -buffer.bytes)[:MOST_BUFFERS]
    return {
        **one.figures,
        "choice": next((_choice(c) for c in choices if c["memory"] == one.memory), None),
        "buffer_count": len(one.buffers),
        "buffers": [
            [b.buffer, b.address, b.bytes, b.first, b.last, *b.banks] for b in buffers
        ],
        "banks": [
            [b.first, b.last, b.bytes, b.buffers, b.uses, b.busy, b.conflicts, b.lost]
            for b in one.banks
        ],
        "end": one.touches.end,
        "shape": list(one.touches.counts.shape),
        "touches": pack_column(one.touches.counts.reshape(-1)),
    }  # fmt: skip


def _choice(choice: dict[str, Any]) -> dict[str, Any]:
    """How buffers were spread over banks."""
    return {key: choice[key] for key in ("conflicts", "packed_conflicts", "because")}


def _not_fused(refusals: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Refused pairs under their reasons, the most frequent first."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for refusal in refusals:
        groups.setdefault(refusal["because"], []).append(refusal)
    return [
        {
            "because": because,
            "count": len(pairs),
            "places": [[p["writer"], p["reader"], p["line"], p["detail"]]
                       for p in pairs[:MOST_PLACES]],
        }
        for because, pairs in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]  # fmt: skip
