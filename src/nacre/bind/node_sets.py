"""Sets of nodes by their numbers, which say what is before a node.

A set is bits in integers, since all that is asked is whether a node is in it, and all that is made
is one of two together, or with one more. A program may have a hundred thousand nodes and as many
sets; each differs little from those that it is made of, so a set is cut into pieces, and sets share
the pieces that they have in common.
"""

from __future__ import annotations

NodeSet = tuple[int, ...]  # of every piece its bits

_BITS = 12
_PIECE = 1 << _BITS
_LAST = (1 << _BITS) - 1
EMPTY: NodeSet = (0,)


def contains(nodes: NodeSet, number: int) -> bool:
    """Whether a node is in a set."""
    if number < _PIECE:  # which is most programs
        return nodes[0] >> number & 1 == 1
    at = number >> _BITS
    return at < len(nodes) and nodes[at] >> (number & _LAST) & 1 == 1


def with_node(nodes: NodeSet, number: int) -> NodeSet:
    """A set with one more node."""
    if number < _PIECE and len(nodes) == 1:  # which is most programs
        return (nodes[0] | 1 << number,)
    at, bit = number >> _BITS, 1 << (number & _LAST)
    if len(nodes) <= at:
        return (*nodes, *(0,) * (at - len(nodes)), bit)
    return (*nodes[:at], nodes[at] | bit, *nodes[at + 1 :])


def union(a: NodeSet, b: NodeSet) -> NodeSet:
    """What either of two sets has."""
    if len(a) == 1 == len(b):  # which is most programs
        return (a[0] | b[0],)
    if a is b:
        return a
    if len(a) < len(b):
        a, b = b, a
    return (*map(_either, a, b), *a[len(b) :])


def _either(a: int, b: int) -> int:
    """Both pieces together; one of the two themselves where it has all of the other."""
    if a is b:
        return a
    made = a | b
    if made == a:
        return a
    return b if made == b else made
