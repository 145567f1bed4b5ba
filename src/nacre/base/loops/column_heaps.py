"""Heaps of integers that lie in a column, several in one: lists, or arrays when compiled.

So they keep to what a compiler of loops understands: integers, indexing, loops.
"""

from __future__ import annotations

from typing import Any

Ints = Any  # a list of integers, or an array of them when compiled


def push(heap: Ints, base: int, size: int, key: int) -> int:
    """Put a key into the heap at `base`; the new size."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if heap[base + parent] <= key:
            break
        heap[base + at] = heap[base + parent]
        at = parent
    heap[base + at] = key
    return size + 1


def pop(heap: Ints, base: int, size: int) -> int:
    """Drop the least key of the heap at `base`; the new size."""
    size -= 1
    key = heap[base + size]
    at = 0
    child = 1
    while child < size:
        if child + 1 < size and heap[base + child + 1] < heap[base + child]:
            child += 1
        if heap[base + child] >= key:
            break
        heap[base + at] = heap[base + child]
        at = child
        child = 2 * at + 1
    heap[base + at] = key
    return size
