"""Images timed one after the other take what each takes alone."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from nacre.bind.pipeline import bind_plan
from nacre.bind.request import BindOptions
from nacre.bind.uarch.builtin import load_uarch
from nacre.tcb.figures import Figures
from nacre.tcb.image import Block, Image, Item, Repeat, Stream
from nacre.tcb.machine.hardware import BankKind, _banks_of_each
from nacre.tcb.machine.retiming import ImageTimer
from nacre.tcb.machine.timing import time_image
from tests.tcb.machine.bound import EXAMPLES, example


def image_of(path: Path) -> Image:
    """An example on hardware with banks, requests and queues."""
    program = example(path)
    options = BindOptions(load_uarch("npm4k", "npm4k"), may_serialise=True)
    return bind_plan(program.plan, program.name, program.device, options).image


def changed(items: tuple[Item, ...], rng: random.Random) -> tuple[Item, ...]:
    """Some blocks with other costs, requests, priorities or places."""
    made: list[Item] = []
    for item in items:
        if isinstance(item, Repeat):
            made.append(replace(item, items=changed(item.items, rng)))
        else:
            made.append(changed_block(item, rng) if rng.random() < 0.4 else item)
    return tuple(made)


def changed_block(block: Block, rng: random.Random) -> Block:
    """A block that takes something else."""
    units = tuple(replace(use, work=use.work + rng.randrange(1, 400)) for use in block.units)
    outputs = tuple(replace(o, address=o.address) for o in block.outputs)
    if rng.random() < 0.5 and all(isinstance(o.address, int) for o in outputs):
        outputs = tuple(replace(o, address=64 * rng.randrange(64)) for o in outputs)
    burst = rng.choice([0, 64, 256]) if block.units else 0
    return replace(block, units=units, outputs=outputs, burst=burst, priority=rng.randrange(2))


@pytest.mark.parametrize("path", EXAMPLES[:2], ids=lambda path: path.stem)
def test_an_image_that_is_timed_after_others_takes_what_it_takes_alone(path: Path) -> None:
    first, rng = image_of(path), random.Random(3)
    timer = ImageTimer(first)
    for _ in range(4):
        streams = tuple(Stream(s.engine, changed(s.items, rng)) for s in first.streams)
        for image in (replace(first, streams=streams), first):
            found, expected = timer.time(image), time_image(image)
            for column in ("start", "end", "unit"):
                assert np.array_equal(getattr(found, column), getattr(expected, column)), column
            assert found.stall_totals == expected.stall_totals


def test_an_image_with_another_order_is_no_variant_of_the_first() -> None:
    image = image_of(EXAMPLES[0])
    (stream,) = [s for s in image.streams if s.items]
    last = stream.items[-1]
    assert isinstance(last, Block)
    other = Stream(stream.engine, (*stream.items[:-1], replace(last, waits=())))
    with pytest.raises(ValueError, match="another program"):
        ImageTimer(image).time(replace(image, streams=(other,)))


@pytest.mark.parametrize("banks", [1, 3, 8, 62])
def test_banks_are_those_that_bytes_lie_in_one_by_one(banks: int) -> None:
    rng = random.Random(banks)
    kind = BankKind(banks, 1, 16, 1)
    for _ in range(50):
        address, size = rng.randrange(4000), rng.choice([0, 1, 15, 16, 17, 100, 2000])
        expected = {(address + n) // 16 % banks for n in range(max(1, size))}
        (found,) = _banks_of_each(np.array([address]), size, kind).tolist()
        assert {bank for bank in range(62) if found >> bank & 1} == expected


def test_figures_of_the_hardware_have_banks() -> None:
    assert Figures(dict(image_of(EXAMPLES[0]).machine.figures)).count("l1.banks") > 1
