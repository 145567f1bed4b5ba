"""Terms as a shape, which many share, and the integers in its holes.

A shape is a list of integers, the term from the left to the right with operators behind what they
are applied to: 0 an integer, 1 to 5 an operator, from 6 on a counter.
"""

from __future__ import annotations

from typing import Final

from nacre.base.terms import LoopVariable, Operation, Term, operation, operation_count
from nacre.tcb.binary.pools import ReadPools, WrittenPools, require_int64
from nacre.tcb.image import counter
from nacre.tcb.limits import MAX_DEPTH, MAX_TERM_DEPTH, MAX_TERM_OPERATIONS

OPERATORS: Final = ("+", "-", "*", "/", "mod")
_CODES: Final = {op: code for code, op in enumerate(OPERATORS, 1)}
_HOLE: Final = 0
_FIRST_COUNTER: Final = len(OPERATORS) + 1

PackedTerm = tuple[int, tuple[int, ...]]


def pack_term(term: Term, pools: WrittenPools) -> PackedTerm:
    """The number of a shape, and the integers in it."""
    if isinstance(term, int):
        return pools.list_of((_HOLE,)), (require_int64(term),)
    shape: list[int] = []
    integers: list[int] = []
    _add(term, shape, integers)
    return pools.list_of(shape), tuple(integers)


def _add(term: Term, shape: list[int], integers: list[int]) -> None:
    if isinstance(term, int):
        shape.append(_HOLE)
        integers.append(require_int64(term))
    elif isinstance(term, LoopVariable):
        shape.append(_FIRST_COUNTER + term.depth)
    else:
        _add(term.left, shape, integers)
        _add(term.right, shape, integers)
        shape.append(_CODES[term.op])


def hole_count(shape: int, pools: ReadPools) -> int:
    """How many integers the shape of a number has; Broken where it is none."""
    found = pools.terms.get(shape)
    if found is None:
        codes = pools.list_of(shape)
        _judge(codes, pools)
        found = pools.terms[shape] = codes.count(_HOLE)
    return int(found)


def _judge(codes: tuple[int, ...], pools: ReadPools) -> None:
    depths: list[int] = []
    for code in codes:
        if 0 < code < _FIRST_COUNTER:
            if len(depths) < 2:
                raise pools.broken("an operator of a term has nothing to be applied to")
            depths.append(1 + max(depths.pop(), depths.pop()))
        elif code == _HOLE or _FIRST_COUNTER <= code < _FIRST_COUNTER + MAX_DEPTH:
            depths.append(0)
        else:
            raise pools.broken(f"{code:,} is no part of a term")
    is_large = len(codes) > 2 * MAX_TERM_OPERATIONS + 1
    if len(depths) != 1 or depths[0] > MAX_TERM_DEPTH or is_large:
        raise pools.broken("a list is no term, or one that is too large")


def unpack_term(packed: PackedTerm, pools: ReadPools) -> Term:
    """The inverse of `pack_term`, of a shape that was judged."""
    codes = pools.list_of(packed[0])
    if len(codes) == 1 and codes[0] == _HOLE:
        return packed[1][0]
    integers = iter(packed[1])
    stack: list[Term] = []
    for code in codes:
        if code == _HOLE:
            stack.append(next(integers))
        elif code >= _FIRST_COUNTER:
            stack.append(counter(code - _FIRST_COUNTER))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(operation(OPERATORS[code - 1], left, right))
    return stack[0]


def depth_of(term: Term) -> int:
    """How deep operations lie in each other."""
    if not isinstance(term, Operation):
        return 0
    if operation_count(term) > MAX_TERM_OPERATIONS:
        return operation_count(term)
    return 1 + max(depth_of(term.left), depth_of(term.right))
