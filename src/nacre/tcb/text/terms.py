"""Terms as text: `0x400 + c0*64 + (c0 mod 2)*4096`."""

from __future__ import annotations

from typing import Final

from nacre.base.terms import LoopVariable, Operation, Term

PRECEDENCE: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "mod": 2}
_SPACED: Final = {"+": " + ", "-": " - ", "*": "*", "/": "/", "mod": " mod "}


def term_text(term: Term) -> str:
    """A term, with decimal numbers."""
    return _write(term, is_hexadecimal=False)


def address_text(term: Term) -> str:
    """A term whose summands are addresses, and hexadecimal; its factors are not."""
    return _write(term, is_hexadecimal=True)


def hexadecimal(value: int) -> str:
    """An address."""
    return f"{value:#x}"


def _write(term: Term, *, is_hexadecimal: bool) -> str:
    if isinstance(term, int):
        return hexadecimal(term) if is_hexadecimal else str(term)
    if isinstance(term, LoopVariable):
        return f"c{term.depth}"
    is_inside = is_hexadecimal and PRECEDENCE[term.op] == 1
    left = _write(term.left, is_hexadecimal=is_inside)
    right = _write(term.right, is_hexadecimal=is_inside)
    left = f"({left})" if _is_left_enclosed(term.op, term.left) else left
    right = f"({right})" if _is_right_enclosed(term.op, term.right) else right
    return f"{left}{_SPACED[term.op]}{right}"


def _is_left_enclosed(op: str, left: Term) -> bool:
    if not isinstance(left, Operation):
        return False
    own, inner = PRECEDENCE[op], PRECEDENCE[left.op]
    # Products and remainders of one rank go from left to right, which nobody remembers.
    return inner < own or (inner == own == PRECEDENCE["*"] and left.op != op)


def _is_right_enclosed(op: str, right: Term) -> bool:
    return isinstance(right, Operation) and PRECEDENCE[right.op] <= PRECEDENCE[op]
