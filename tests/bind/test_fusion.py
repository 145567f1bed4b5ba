"""Chains on hardware: what is streamed, what the device refuses, and that the proof sees more."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nacre.base.source import Source
from nacre.bind.fusion import FusedChains
from nacre.bind.pipeline import bind_plan
from nacre.bind.request import BindOptions
from nacre.bind.uarch.reader import Uarch, read_uarch
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.model.devices import Device
from nacre.nem.plan.plan import Plan
from nacre.tcb.binary.encoding import encode
from nacre.tcb.files import read_image
from nacre.tcb.image import STREAM, Block, Image, Item, Repeat
from nacre.tcbcheck.verify import verify_image

PROGRAM = """include "npm4k.nem"
device npm4k
program p:
buffer D : DDR (size=65536)
buffer O : DDR (size=65536)
buffer L : L2 (size=65536)
buffer A : L1 (size=65536)
loop i in [0..3]:
    let X = region(A, (i mod 2) * 2048, 512) elem=f16, shape=[16, 16], layout=MN
    let W = region(A, 8192, 512) elem=f16, shape=[16, 16], layout=KN
    let Y = region(A, 16384 + (i mod 2) * 2048, 512) elem=f16, shape=[16, 16], layout=MN
    let Z = region(A, 32768 + (i mod 2) * 2048, 512) elem=f16, shape=[16, 16], layout=MN
    x = transfer.async(dst=X, src=region(D, i * 512, 512))
    w = transfer.async(dst=region(A, 8192, 512), src=region(D, 8192, 512), deps=[x])
    c = gemm.async in X, W out Y deps=[x, w] accum_type=f32
    r = relu.async in Y out Z deps=[c]
    s = store.async(dst=region(L, i * 512, 512), src=Z, deps=[r])
endloop
"""
LINKS = ("NMU_CSTLA", "NMU_CSTLB", "CSTLA_CSTLB")


def checked(text: str) -> tuple[Plan, Device]:
    found = check_source(Source("p.nem", text), CheckOptions())
    assert [d for d in found.diagnostics if d.severity == "error"] == []
    assert found.facts is not None
    return found.facts.plan, found.device


def uarch(links: tuple[str, ...], depth: int = 3) -> Uarch:
    text = f"uarch u {{ chain {{ links = [{', '.join(links)}] depth = {depth} }} }}"
    result = read_uarch(Source("u.uarch", text))
    assert result.diagnostics == ()
    return result.uarch


def bound(text: str, described: Uarch) -> tuple[Plan, FusedChains, Image]:
    plan, device = checked(text)
    found = bind_plan(plan, "p", device, BindOptions(described))
    return plan, found.fused, found.image


def blocks(image: Image) -> dict[str, Block]:
    names = {origin.position: origin.name for origin in image.origins}
    found = [block for stream in image.streams for block, _ in stream.blocks()]
    return {names[block.position]: block for block in found if block.kind == "task"}


def test_an_image_with_a_chain_around_other_tasks_is_read_as_it_was_written() -> None:
    """What stands between the tasks of a chain stands before all of its blocks."""
    between = "    v = transfer.async(dst=region(A, 49152, 512), src=region(D, 12288, 512))\n"
    lines = PROGRAM.splitlines(keepends=True)
    lines.insert(next(n for n, line in enumerate(lines) if " r = relu" in line), between)
    plan, fused, image = bound("".join(lines), uarch(LINKS))
    assert [[task.name for task in chain.tasks] for chain in fused.chains] == [["c", "r", "s"]]
    found = blocks(image)
    assert found["c"].position < found["v"].position < found["r"].position
    reread = read_image(encode(image), "p.tcb")
    assert reread == image
    assert verify_image(plan, reread) == []


def test_a_product_streams_into_its_activation_and_store() -> None:
    plan, fused, image = bound(PROGRAM, uarch(LINKS))
    assert [[task.name for task in chain.tasks] for chain in fused.chains] == [["c", "r", "s"]]
    found = blocks(image)
    assert [found[name].is_chained for name in "xwcrs"] == [False, False, True, True, False]
    assert found["c"].outputs[0].memory == found["r"].inputs[0].memory == STREAM  # type: ignore[union-attr]
    assert found["r"].outputs[0].memory == found["s"].inputs[0].memory == STREAM  # type: ignore[union-attr]
    assert found["r"].waits == found["s"].waits == ()
    assert found["s"].signal is not None
    assert verify_image(plan, image) == []


@pytest.mark.parametrize(
    ("links", "depth", "chains", "reason"),
    [
        ((), 3, [], None),
        (("NMU_CSTLA",), 3, [["c", "r"]], "link"),
        (("CSTLA_CSTLB",), 3, [["r", "s"]], "link"),
        (LINKS, 2, [["c", "r"]], "depth"),
    ],
)
def test_a_device_chains_what_it_can(
    links: tuple[str, ...], depth: int, chains: list[list[str]], reason: str | None
) -> None:
    plan, fused, image = bound(PROGRAM, uarch(links, depth))
    assert [[task.name for task in chain.tasks] for chain in fused.chains] == chains
    if reason is not None:
        assert reason in {refusal.reason for refusal in fused.refusals}
        assert all(refusal.sentence for refusal in fused.refusals)
    assert verify_image(plan, image) == []


def test_a_task_between_that_waits_for_one_of_them() -> None:
    text = PROGRAM.replace(
        "    s = store",
        "    k = transfer.async(dst=X, src=region(D, 0, 512), deps=[c])\n    s = store",
    )
    plan, fused, image = bound(text, uarch(LINKS))
    assert "queue" in {refusal.reason for refusal in fused.refusals}
    assert verify_image(plan, image) == []


def change(image: Image, name: str, **changes: object) -> Image:
    """An image in which one block is changed."""
    position = blocks(image)[name].position

    def walk(items: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(
            replace(item, items=walk(item.items))
            if isinstance(item, Repeat)
            else replace(item, **changes)
            if item.position == position and item.kind == "task"
            else item
            for item in items
        )

    streams = tuple(replace(stream, items=walk(stream.items)) for stream in image.streams)
    return replace(image, streams=streams)


def test_the_proof_does_not_rest_on_the_search() -> None:
    """A chain that the search would refuse, put there by hand: another task reads the value."""
    reader = "    q = transfer.async(dst=region(O, 0, 512), src=Y, deps=[r, s])\nendloop"
    plan, fused, image = bound(PROGRAM.replace("endloop", reader), uarch(LINKS))
    assert ["c"] not in [[task.name for task in chain.tasks[:1]] for chain in fused.chains]
    found = blocks(image)
    sent = replace(found["c"].outputs[0], memory=STREAM, address=0)
    broken = change(image, "c", is_chained=True, outputs=(sent,))
    taken = replace(found["r"].inputs[0], memory=STREAM, address=0)  # type: ignore[type-var]
    broken = change(broken, "r", inputs=(taken,))
    (finding,) = verify_image(plan, broken)[:1]
    assert finding.code == "TCB87"
    assert "`q` in iteration [0] reads the value of `c` in iteration [0]" in finding.message


def test_a_stream_of_other_elements() -> None:
    plan, _, image = bound(PROGRAM, uarch(LINKS))
    taken = blocks(image)["r"].inputs[0]
    assert taken is not None
    other = replace(taken, strides=(1, 16))
    findings = verify_image(plan, change(image, "r", inputs=(other,)))
    assert "TCB87" in {finding.code for finding in findings}


def test_without_chains_nothing_is_streamed() -> None:
    plan, device = checked(PROGRAM)
    image = bind_plan(plan, "p", device, BindOptions(uarch(LINKS), fuse=False)).image
    assert not any(block.is_chained for block in blocks(image).values())
    assert verify_image(plan, image) == []
