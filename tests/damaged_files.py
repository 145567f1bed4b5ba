"""Files that are nearly right: small changes of bytes, and a command that tries many of them."""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import process_time

Mutation = Callable[[random.Random, bytearray], None]


def _flip(draw: random.Random, data: bytearray) -> None:
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def _set(draw: random.Random, data: bytearray) -> None:
    data[draw.randrange(len(data))] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))


def _remove(draw: random.Random, data: bytearray) -> None:
    at = draw.randrange(len(data))
    del data[at : at + draw.randrange(1, 4)]


def _insert(draw: random.Random, data: bytearray) -> None:
    at = draw.randrange(len(data))
    data[at:at] = draw.randbytes(draw.randrange(1, 4))


def _swap(draw: random.Random, data: bytearray) -> None:
    a, b = draw.randrange(len(data)), draw.randrange(len(data))
    data[a], data[b] = data[b], data[a]


_MUTATIONS: tuple[Mutation, ...] = (_flip, _flip, _set, _set, _remove, _insert, _swap)


def mutate_sealed(draw: random.Random, data: bytes, seal: Callable[[bytes], bytes]) -> bytes:
    """A file with a few changes, and mostly the checksums that it needs, which `seal` sets."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        draw.choice(_MUTATIONS)(draw, changed)
    return bytes(changed) if draw.random() < 0.02 else seal(bytes(changed))


def try_files(
    description: str | None,
    suffix: str,
    next_file: Callable[[random.Random], bytes],
    outcome: Callable[[random.Random, bytes], str],
    most_seconds: float = 1.0,
) -> None:
    """Try as many files as the command line says, and print what became of them.

    `outcome` names what became of a file, and raises where a promise is broken; such a file is
    kept, and so is one that takes long.
    """
    reader = argparse.ArgumentParser(description=description)
    reader.add_argument("--count", type=int, default=10_000)
    reader.add_argument("--seed", type=int, default=1)
    options = reader.parse_args()
    draw = random.Random(options.seed)
    outcomes: Counter[str] = Counter()
    started, longest = process_time(), 0.0
    for number in range(options.count):
        data = next_file(draw)
        stem = f"mutant-{options.seed}-{number}"
        begun = process_time()
        try:
            found = outcome(draw, data)
        except BaseException:
            Path(f"{stem}{suffix}").write_bytes(data)
            raise
        taken = process_time() - begun
        longest = max(longest, taken)
        if taken > most_seconds:
            Path(f"{stem}-slow{suffix}").write_bytes(data)
        outcomes["slow" if taken > most_seconds else found] += 1
    taken = process_time() - started
    lines = [f"{options.count:,} files in {taken:.0f} s, {options.count / taken:,.0f} a second"]
    lines.append(f"the longest took {longest:.2f} s")
    lines += [f"{found:12} {count:9,}" for found, count in outcomes.most_common()]
    sys.stdout.write("\n".join(lines) + "\n")
