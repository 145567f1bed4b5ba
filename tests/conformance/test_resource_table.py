"""DEC10 for every opcode and every unit, against the registry."""

from __future__ import annotations

from collections.abc import Sequence

import nacre
from nacre.nem.spec.opcodes import OPCODES

LEVELS = ("DDR", "L2", "L1")
TARGETS = ("NMU", "CSTL", "DMA", "VPU")


def refused(statements: Sequence[str]) -> list[bool]:
    """On which of some statements DEC10 stands."""
    buffers = [f"buffer {n}{i} : {n} (size=64)" for n in LEVELS for i in (0, 1)]
    region = "let X = region(L10, 0, 64) elem=i8, shape=[64], layout=C"
    text = "\n".join([*buffers, region, *statements])
    found = [d for d in nacre.nem.check(text) if d.code == "DEC10"]
    assert all(d.severity == "error" for d in found)
    lines = {d.location.line for d in found}
    return [at in lines for at in range(len(buffers) + 2, len(buffers) + 2 + len(statements))]


def test_a_compute_task_runs_on_the_units_of_its_row_only() -> None:
    computes = [o for o in OPCODES.values() if o.category != "data_movement"]
    pairs = [(opcode, unit) for opcode in computes for unit in TARGETS]
    tasks = [f"{opcode.name}.sync in X out X @resource({unit}[0])" for opcode, unit in pairs]
    expected = [unit not in opcode.eligible_units for opcode, unit in pairs]
    assert refused(tasks) == expected


def test_a_copy_runs_on_the_unit_of_its_levels_only() -> None:
    ways = [(a, b, unit) for a in LEVELS for b in LEVELS for unit in TARGETS]
    transfers, stores, expected = [], [], []
    for source, target, unit in ways:
        copy = f"dst=region({target}1, 0, 64), src=region({source}0, 0, 64)"
        transfers.append(f"transfer.sync({copy}) @resource({unit}[0])")
        stores.append(f"store.sync({copy}) @resource({unit}[0])")
        takes_dma = "L1" in (source, target) or (source, target) == ("L2", "L2")
        expected.append(unit != "DMA" or not takes_dma)
    assert refused(transfers) == expected
    assert refused(stores) == [unit != "CSTL" for _, _, unit in ways]
