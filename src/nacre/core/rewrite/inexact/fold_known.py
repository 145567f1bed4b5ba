"""Operations on constants, done ahead of time: no device needs to compute what is known."""

from __future__ import annotations

from math import prod

from nacre.core.ops import OPS
from nacre.core.rewrite.folding import compute, known_operands
from nacre.core.rewrite.site import RewriteSite, Rules

_LARGEST = 1 << 24  # elements: beyond, a constant costs more memory than it saves work


def fold(site: RewriteSite) -> int | None:
    """The result of an operation whose operands are all known."""
    arrays = known_operands(site) if prod(site.op.type.shape) <= _LARGEST else None
    made = None if arrays is None else compute(site, arrays)
    return None if made is None else site.literal(made, site.op.type.dtype)


FOLD_KNOWN: Rules = {
    name: [fold] for name, spec in OPS.items() if "constant" not in spec.traits and name != "Input"
}
