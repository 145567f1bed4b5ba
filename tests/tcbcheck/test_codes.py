"""Every code of the verifier: an image that is refused with it, and a page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from nacre.base.rules import RULES
from nacre.bind.pipeline import bind_plan
from nacre.bind.request import Host
from nacre.tcb.image import Block, Image, Item, Tag, Wait
from nacre.tcbcheck.target import Target
from nacre.tcbcheck.verify import verify_image
from tests.bind.programs import checked

CODES = sorted(code for code in RULES if code.startswith(("TCB8", "TCB9")))
OF_TARGET = ("TCB90", "TCB91", "TCB92")

SMALL = """
a = copy A 0
b = copy A 0 deps a
"""
BOTH = """
a = copy A 0
b = copy A 64
c = copy A 128 deps a, b
"""
LARGE = """
loop i in [0..3000] @max_in_flight(2):
a = copy A (i mod 2) * 64
b = copy A 1024 + (i mod 2) * 64
endloop
"""


def change(image: Image, change_block: Callable[[Block], Block | None]) -> Image:
    """An image with other blocks; None: without the block."""

    def walk(items: tuple[Item, ...]) -> tuple[Item, ...]:
        changed = (
            change_block(item) if isinstance(item, Block) else replace(item, items=walk(item.items))
            for item in items
        )
        return tuple(item for item in changed if item is not None)

    streams = tuple(replace(stream, items=walk(stream.items)) for stream in image.streams)
    return replace(image, streams=streams)


def move(block: Block) -> Block:
    output = block.outputs[0]
    return replace(block, outputs=(replace(output, address=128),))


def stream(block: Block) -> Block:
    """The first block streams what the second then does not find in memory."""
    if block.position:
        return block
    output = replace(block.outputs[0], memory="stream", address=0)
    return replace(block, outputs=(output,), is_chained=True)


def wait_too_long(block: Block) -> Block:
    return replace(block, waits=(Wait(Tag(0, 0), 9),))


def signal_alike(image: Image) -> Image:
    """Both tasks of an iteration signal one tag, and nobody waits for the other's."""
    blocks = [block for one in image.streams for block, _ in one.blocks()]
    mine, other = (block.signal for block in blocks[:2])

    def share_tag(block: Block) -> Block:
        waits = tuple(wait for wait in block.waits if wait.tag != other)
        return replace(block, waits=waits, signal=mine if block.signal == other else block.signal)

    return change(image, share_tag)


CASES: dict[str, tuple[str, Callable[[Image], Image]]] = {
    "TCB80": (SMALL, lambda image: change(image, lambda b: b if b.position else None)),
    "TCB81": (SMALL, lambda image: change(image, lambda b: replace(b, op="relu"))),
    "TCB82": (SMALL, lambda image: change(image, move)),
    "TCB83": (SMALL, lambda image: replace(image, placements=())),
    "TCB84": (SMALL, lambda image: change(image, lambda b: replace(b, waits=()))),
    "TCB85": (
        SMALL,
        lambda image: change(image, wait_too_long),
    ),
    "TCB86": (LARGE, signal_alike),
    "TCB87": (SMALL, lambda image: change(image, stream)),
    "TCB88": (SMALL, lambda image: replace(image, constants=())),
    "TCB90": (SMALL, lambda image: replace(image, machine=replace(image.machine, engines=9))),
    "TCB91": (SMALL, lambda image: replace(image, ports=())),
    "TCB92": (SMALL, lambda image: change(image, lambda b: replace(b, units=()))),
    "TCB89": (BOTH, lambda image: replace(image, machine=replace(image.machine, token_limit=1))),
}


def test_every_code_is_shown() -> None:
    assert sorted(CASES) == CODES


@pytest.mark.parametrize("code", CODES)
def test_an_image_is_refused_with_its_code(code: str) -> None:
    text, broken = CASES[code]
    plan, device = checked(text)
    constants = {"D": bytes(65536)}
    image = bind_plan(plan, "p", device, host=Host(constants=tuple(constants.items()))).image
    target = Target(device)
    assert verify_image(plan, image, constants, target) == []
    found = verify_image(plan, broken(image), constants, target if code in OF_TARGET else None)
    assert {finding.code for finding in found} == {code}, [str(finding) for finding in found]


@pytest.mark.parametrize("code", CODES)
def test_a_page_is_a_sentence_and_names_its_clause(code: str) -> None:
    rule = RULES[code]
    assert rule.spec.startswith("TCB / ")
    assert rule.summary[0].isupper()
    assert rule.summary.endswith(".")


# Both loops count with the same tags, of which the end of the first raises the one of slot 1, that
# one iteration has used and not two.
TWO_LOOPS = """
loop i in [0..2] @max_in_flight(2):
a = copy A i * 64
b = copy A 256 + i * 64 deps a
endloop
loop j in [0..2] @max_in_flight(2):
c = copy A 512 + j * 64
d = copy A 1024 + j * 64 deps c
endloop
"""


def test_a_signal_that_can_come_before_its_tag_is_raised_is_lost() -> None:
    plan, device = checked(TWO_LOOPS)
    image = bind_plan(plan, "p", device).image
    last = max(task.position for task in plan.program.tasks)
    early = change(image, lambda b: replace(b, waits=()) if b.position == last else b)
    found = verify_image(plan, early)
    assert {finding.code for finding in found} == {"TCB85"}
    assert "where a signal comes before its tag is raised" in found[0].message
