"""Images broken on purpose, one thing at a time."""

from __future__ import annotations

import random
from collections.abc import Callable

from msgspec.structs import replace

from nacre.base.terms import operation
from nacre.tcb.image import Block, Image, Item, Repeat

Mutation = Callable[[Block, list[Block], random.Random], Block | None]


def drop_wait(block: Block, others: list[Block], rng: random.Random) -> Block | None:
    """A wait is forgotten."""
    if not block.waits:
        return None
    left = rng.randrange(len(block.waits))
    return replace(block, waits=block.waits[:left] + block.waits[left + 1 :])


def change_value(block: Block, others: list[Block], rng: random.Random) -> Block | None:
    """A wait is for a count that is too low or too high."""
    if not block.waits:
        return None
    at = rng.randrange(len(block.waits))
    wait = block.waits[at]
    changed = replace(wait, value=operation("+", wait.value, rng.choice((-2, -1, 1))))
    return replace(block, waits=(*block.waits[:at], changed, *block.waits[at + 1 :]))


def change_tag(block: Block, others: list[Block], rng: random.Random) -> Block | None:
    """A wait is for the tag beside."""
    if not block.waits:
        return None
    at = rng.randrange(len(block.waits))
    wait = block.waits[at]
    tag = replace(wait.tag, index=operation("+", wait.tag.index, rng.choice((1, 2))))
    waits = (*block.waits[:at], replace(wait, tag=tag), *block.waits[at + 1 :])
    return replace(block, waits=waits)


def change_signal(block: Block, others: list[Block], rng: random.Random) -> Block | None:
    """A tag is used again too early: a block signals that of another."""
    if block.signal is None:
        return None
    return replace(block, signal=replace(block.signal, index=rng.randrange(4)))


def drop_signal(block: Block, others: list[Block], rng: random.Random) -> Block | None:
    """A signal is forgotten."""
    return None if block.signal is None else replace(block, signal=None)


def drop_raise(block: Block, others: list[Block], rng: random.Random) -> Block | None:
    """The tags of a loop keep their counts."""
    return replace(block, sets=()) if block.sets else None


def take_waits(block: Block, others: list[Block], rng: random.Random) -> Block | None:
    """A block has the waits of another."""
    other = rng.choice(others)
    return None if other.waits == block.waits else replace(block, waits=other.waits)


def move_operand(block: Block, others: list[Block], rng: random.Random) -> Block | None:
    """An address is another."""
    if not block.outputs:
        return None
    output = block.outputs[0]
    moved = replace(output, address=operation("+", output.address, rng.choice((1, 64, -64))))
    return replace(block, outputs=(moved, *block.outputs[1:]))


ORDER_MUTATIONS: tuple[Mutation, ...] = (
    drop_wait, change_value, change_tag, change_signal, drop_signal, drop_raise, take_waits,
)  # fmt: skip


def mutate(image: Image, mutation: Mutation, rng: random.Random) -> Image | None:
    """An image with one block changed; None where the block has nothing to change."""
    streams = [list(stream.blocks()) for stream in image.streams]
    number = rng.randrange(len(streams))
    same_depth = streams[number]
    at = rng.randrange(len(same_depth))
    block, around = same_depth[at]
    others = [b for b, repeats in same_depth if repeats == around]
    changed = mutation(block, others, rng)
    if changed is None or changed == block:
        return None
    stream = image.streams[number]
    items, _ = _put(stream.items, changed, at)
    made = replace(stream, items=items)
    return replace(image, streams=(*image.streams[:number], made, *image.streams[number + 1 :]))


def _put(items: tuple[Item, ...], changed: Block, at: int) -> tuple[tuple[Item, ...], int]:
    """Items with the block of an index replaced, and the index less the blocks among them."""
    made: list[Item] = []
    for item in items:
        if isinstance(item, Repeat):
            inner, at = _put(item.items, changed, at)
            made.append(replace(item, items=inner))
        else:
            made.append(changed if at == 0 else item)
            at -= 1
    return tuple(made), at
