"""Machine, ports and units: an image in which one of them is another is not proved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

import nacre
from nacre.base.terms import Term
from nacre.bind.request import BindOptions
from nacre.binding import TcbImage
from nacre.compile.bundle.bundle import Bundle
from nacre.core.builder import Builder
from nacre.tcb.image import STREAM, Block, Image, Machine, Port
from nacre.tcbcheck.target import ExpectedPort, Target
from nacre.tcbcheck.verify import verify_image
from tests.bind.test_fusion import LINKS, change
from tests.bind.test_fusion import PROGRAM as CHAIN
from tests.bind.test_store_formats import BODY, blocks, uarch
from tests.bind.test_store_formats import HEAD as STORE_HEAD
from tests.tcbcheck.bound_images import bind_text

TASKS = """include "npm_mid.nem"
device npm_mid
program p:
buffer D : DDR (size=8192)
buffer A : L1[0] (size=65536)
buffer B : L1[1] (size=65536)
buffer L : L2 (size=8192)
loop i in [0..3]:
    let X = region(A, 0, 256) elem=i8, shape=[16, 16], layout=MN
    x = transfer.async(dst=region(A, 0, 256), src=region(D, 0, 256)) @resource(DMA[i])
    r = relu.async in X out region(A, 256, 256) elem=i8, shape=[16, 16], layout=MN deps=[x]
    s = store.async(dst=region(L, 0, 256), src=region(A, 256, 256), deps=[r])
    y = transfer.async(dst=region(B, 0, 256), src=region(L, 0, 256), deps=[s])
endloop
"""


def codes(image: Image, text: str) -> set[str]:
    return {finding.code for finding in TcbImage(image).verify(text)}


def raised(pairs: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    (name, count), *others = pairs
    return ((name, count + 1), *others)


MACHINES: dict[str, Callable[[Machine], Machine]] = {
    "device": lambda m: replace(m, device="npm4k"),
    "hash": lambda m: replace(m, device_hash="deadbeefdeadbeef"),
    "engines": lambda m: replace(m, engines=m.engines + 1),
    "units": lambda m: replace(m, units=raised(m.units)),
    "no units": lambda m: replace(m, units=m.units[1:]),
    "device units": lambda m: replace(m, device_units=raised(m.device_units)),
    "L1": lambda m: replace(m, memories=(*m.memories[:2], ("L1", 99999999))),
    "L2": lambda m: replace(m, memories=(m.memories[0], ("L2", 1 << 40), m.memories[2])),
    "another memory": lambda m: replace(m, memories=(*m.memories, ("L3", 1))),
    "tokens": lambda m: replace(m, token_limit=1 << 20),
    "tags": lambda m: replace(m, tags=1 << 20),
    "tags of the device": lambda m: replace(m, device_tags=1 << 20),
}


@pytest.mark.parametrize("what", MACHINES)
def test_another_machine_is_found(what: str) -> None:
    _, image = bind_text(TASKS)
    assert codes(image, TASKS) == set()
    broken = replace(image, machine=MACHINES[what](image.machine))
    assert codes(broken, TASKS) == {"TCB90"}


def test_figures_are_the_images_own() -> None:
    _, image = bind_text(TASKS)
    figures = (("queue.depth", 4),)
    other = replace(image.machine, uarch="mine", uarch_hash="0", figures=figures)
    assert codes(replace(image, machine=other), TASKS) == set()


def test_the_device_that_it_was_bound_for_has_to_be_named() -> None:
    text = TASKS.replace('include "npm_mid.nem"\ndevice npm_mid\n', "")
    image = nacre.bind(text, device="npm_mid")
    assert image.verify(text, device="npm_mid") == []
    assert {d.code for d in image.verify(text, device="npm_pro")} >= {"TCB90"}


def test_a_buffer_beyond_the_devices_memory_is_found() -> None:
    _, image = bind_text(TASKS)
    machine = replace(image.machine, memories=(*image.machine.memories[:2], ("L1", 1 << 40)))
    placements = tuple(
        replace(p, address=1 << 30) if p.buffer == "B" else p for p in image.placements
    )
    broken = replace(image, machine=machine, placements=placements)
    assert codes(broken, TASKS) >= {"TCB83", "TCB90"}


PORTS: dict[str, Callable[[Port], tuple[Port, ...]]] = {
    "moved": lambda p: (replace(p, address=p.address + 64),),
    "memory": lambda p: (replace(p, memory="L2"),),
    "size": lambda p: (replace(p, size=p.size // 2),),
    "name": lambda p: (replace(p, name="other"),),
    "kind": lambda p: (replace(p, kind="constant"),),
    "elem": lambda p: (replace(p, elem="bf16"),),
    "dims": lambda p: (replace(p, dims=(2, *(p.dims or ()))),),
    "host elem": lambda p: (replace(p, host_elem="f64"),),
    "scales": lambda p: (replace(p, scales=(7.0,), zero_points=(0,)),),
    "dropped": lambda p: (),
    "twice": lambda p: (p, p),
    "one more": lambda p: (p, replace(p, name="more")),
}


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    build = Builder()
    x = build.input("x", "f32", (4, 16))
    weights = build.constant(np.eye(16, dtype=np.float32) * 2)
    module = build.module(build.add("ReluNan", build.add("Linear", x, weights)))
    return nacre.compile(module, "npm16k")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", PORTS)
@pytest.mark.parametrize("at", [0, 1])
def test_another_port_of_a_bundle_is_found(bundle: Bundle, what: str, at: int) -> None:
    bound = nacre.bind(bundle)
    assert bound.verify(bundle) == []
    ports = list(bound.image.ports)
    ports[at : at + 1] = PORTS[what](ports[at])
    broken = TcbImage(replace(bound.image, ports=tuple(ports)))
    assert {finding.code for finding in broken.verify(bundle)} == {"TCB91"}


@pytest.mark.parametrize("what", PORTS)
def test_another_port_of_a_program_is_found(what: str) -> None:
    _, image = bind_text(TASKS)
    broken = replace(image, ports=PORTS[what](image.ports[0]))
    assert codes(broken, TASKS) == {"TCB91"}


def test_ports_that_are_swapped_are_found(bundle: Bundle) -> None:
    bound = nacre.bind(bundle)
    first, second = bound.image.ports
    swapped = (replace(first, name=second.name), replace(second, name=first.name))
    broken = TcbImage(replace(bound.image, ports=swapped))
    assert {finding.code for finding in broken.verify(bundle)} == {"TCB91"}
    other_order = TcbImage(replace(bound.image, ports=(second, first)))
    assert other_order.verify(bundle) == []


def on(unit: str) -> Callable[[Block], dict[str, object]]:
    return lambda block: {"units": (replace(block.units[0], unit=unit, instance=None),)}


def at(instance: Term | None) -> Callable[[Block], dict[str, object]]:
    return lambda block: {"units": (replace(block.units[0], instance=instance),)}


def on_part(part: str) -> Callable[[Block], dict[str, object]]:
    return lambda block: {"units": (replace(block.units[0], part=part),)}


UNITS: dict[str, tuple[str, Callable[[Block], dict[str, object]]]] = {
    "transfer on CSTL": ("y", on("CSTL")),
    "operation on sDMA": ("r", on("sDMA")),
    "operation on DMA": ("r", on("DMA")),
    "store on DMA": ("s", on("DMA")),
    "none": ("r", lambda _: {"units": ()}),
    "twice": ("r", lambda block: {"units": block.units * 2}),
    "instance": ("x", at(0)),
    "any instance": ("x", at(None)),
    "part": ("s", on_part("CSTLB")),
}


@pytest.mark.parametrize("what", UNITS)
def test_another_unit_is_found(what: str) -> None:
    _, image = bind_text(TASKS)
    name, changed = UNITS[what]
    broken = change(image, name, **changed(blocks(image)[name]))
    assert codes(broken, TASKS) == {"TCB92"}


def test_another_engine_is_found() -> None:
    _, image = bind_text(TASKS)
    others = {0: 1, 1: 0}
    streams = tuple(replace(s, engine=others.get(s.engine, s.engine)) for s in image.streams)
    assert streams != image.streams
    assert codes(replace(image, streams=streams), TASKS) == {"TCB92"}


def test_parts_of_a_cstl() -> None:
    text = STORE_HEAD + BODY
    program, image = bind_text(text, BindOptions(uarch()))
    machine = replace(image.machine, figures=(*image.machine.figures, ("cstl.parts", 2)))
    image, target = replace(image, machine=machine), Target(program.device)
    store = blocks(image)["s"]
    for part, expected in (("CSTLB", []), (None, []), ("CSTLA", ["TCB92"])):
        other = change(image, "s", units=(replace(store.units[0], part=part),))
        found = verify_image(program.plan, other, None, target)
        assert [finding.code for finding in found] == expected


def test_a_value_that_the_host_sees_does_not_stream() -> None:
    program, image = bind_text(CHAIN, BindOptions(uarch(links=LINKS)))
    assert blocks(image)["c"].outputs[0].memory == STREAM
    target = Target(program.device, imported=("A",))
    assert {d.code for d in verify_image(program.plan, image, None, target)} == {"TCB87"}
    ports = (ExpectedPort("D", "inout", "D"), ExpectedPort("O", "inout", "O"))
    target = Target(program.device, ports)
    assert verify_image(program.plan, image, None, target) == []
