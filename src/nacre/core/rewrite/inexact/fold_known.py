"""Operations on constants, done ahead of time: no device needs to compute what is known."""

from __future__ import annotations

from math import prod

from nacre.core.ops import OPS
from nacre.core.rewrite.folding import compute, known_operands
from nacre.core.rewrite.site import RewriteSite, Rules

_LARGEST = 1 << 24  # elements: beyond, a constant costs more memory than it saves work
_ALWAYS = frozenset({"Dequantize"})  # of weights, which are constants however large they are


def fold(site: RewriteSite) -> int | None:
    """The result of an operation whose operands are all known."""
    is_worth_it = site.op.opcode in _ALWAYS or prod(site.op.type.shape) <= _LARGEST
    arrays = known_operands(site) if is_worth_it else None
    made = None if arrays is None else compute(site, arrays)
    return None if made is None else site.literal(made, site.op.type.dtype)


FOLD_KNOWN: Rules = {
    name: [fold] for name, spec in OPS.items() if "constant" not in spec.traits and name != "Input"
}
