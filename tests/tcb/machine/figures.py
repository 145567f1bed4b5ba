"""Microarchitectures at random: few banks, short bursts, short queues."""

from __future__ import annotations

from hypothesis import strategies as st

_CHOICES: dict[str, list[int | str]] = {
    "l1.banks": [0, 1, 4, 100],
    "l1.bank_width": [1, 16],
    "l1.interleave": [1, 64],
    "l1.ports": [1, 2],
    "l2.slices": [0, 2, 8],
    "l2.slice_width": [4, 64],
    "l2.interleave": [32],
    "l2.ports": [1, 3],
    "dma.burst": [0, 16, 64],
    "dma.burst_cycles": [0, 1, 5],
    "dma.align": [1, 16],
    "dma.dims": [0, 1],
    "dma.outstanding": [0, 1, 4],
    "queue.depth": [0, 1, 2, 5],
    "cstl.parts": [1, 2],
    "arbitration.classes": [1, 3],
    "arbitration.rule": ["oldest", "round_robin"],
}


@st.composite
def figures(draw: st.DrawFn) -> dict[str, int | str]:
    """Some figures; those that are left out are ideal."""
    keys = draw(st.lists(st.sampled_from(list(_CHOICES)), unique=True))
    return {key: draw(st.sampled_from(_CHOICES[key])) for key in keys}
