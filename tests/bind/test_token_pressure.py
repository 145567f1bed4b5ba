"""Few tokens and queues in order: an error at the place of pressure, or more order; no stop."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.bind.pipeline import bind_plan
from nacre.bind.request import BindOptions
from nacre.bind.uarch.builtin import load_uarch
from nacre.bind.uarch.reader import Uarch, read_uarch
from nacre.nem.api.programs import LoadedProgram
from nacre.tcb.image import Image
from nacre.tcb.machine.timing import time_image
from nacre.tcbcheck.verify import verify_image
from tests.bind.programs import checked
from tests.effort import scaled
from tests.nem.run.timing.sketches import Machine, Sketch, program_text, programs
from tests.tcb.machine.bound import loaded

pytestmark = pytest.mark.sampled(2)  # together they take long

MANY = """
loop i in [0..40] @max_in_flight(20):
x = copy A (i mod 20) * 64
y = copy A 4096 + (i mod 20) * 64 deps x
endloop
"""


def queues_of(depth: int) -> Uarch:
    text = f"uarch q {{ queue {{ depth = {depth} }} }}"
    result = read_uarch(Source("q.uarch", text))
    assert result.diagnostics == ()
    return result.uarch


@st.composite
def scarce_engines(draw: st.DrawFn) -> Sketch:
    """Many tasks on engines that have few tokens each."""
    counts = {"DMA": draw(st.integers(1, 3)), "CSTL": 2}
    machine = Machine(draw(st.integers(1, 3)), counts, draw(st.integers(1, 4)))
    return draw(programs(machine, 10)), machine


def test_too_many_tokens_are_an_error_at_their_loop() -> None:
    plan, device = checked(MANY)
    with pytest.raises(InputError) as raised:
        bind_plan(plan, "p", device, BindOptions(queues_of(2)))
    (finding,) = raised.value.diagnostics
    assert finding.code == "BND04"
    assert "20 tokens may be alive at once on engine 0, which keeps 16" in finding.message
    assert plan.program.span(plan.program.loops[0].node).start == finding.span.start


def test_windows_are_narrowed_where_that_is_allowed() -> None:
    plan, device = checked(MANY)
    bound = bind_plan(plan, "p", device, BindOptions(queues_of(2), may_serialise=True))
    (narrowed,) = bound.serialised
    assert (narrowed.window, narrowed.for_want_of) == ((20, 10), "tokens")
    assert verify_image(plan, bound.image) == []
    assert not time_image(bound.image).is_stuck


def test_ideal_hardware_takes_what_comes_to_an_end() -> None:
    plan, device = checked(MANY)
    image = bind_plan(plan, "p", device).image
    assert verify_image(plan, image) == []
    assert not time_image(image).is_stuck


def test_tasks_that_stream_into_each_other_have_one_token() -> None:
    text = """
include "npm4k.nem"
device npm4k
program p:
buffer X : L1 (size=4096)
buffer W : L1 (size=4096)
buffer Y : L1 (size=4096)
buffer O : DDR (size=4096)
a = gemm.async in region(X, 0, 512) elem=f16, shape=[16, 16], layout=MK,
    region(W, 0, 512) elem=f16, shape=[16, 16], layout=KN
    out region(Y, 0, 512) elem=f16, shape=[16, 16], layout=MN accum_type=f32
b = relu.async in region(Y, 0, 512) elem=f16, shape=[16, 16], layout=MN
    out region(Y, 512, 512) elem=f16, shape=[16, 16], layout=MN deps=[a]
c = transfer.async(dst=region(O, 0, 512), src=region(Y, 512, 512), deps=[b, a])
"""
    program = loaded(text, None)
    options = BindOptions(load_uarch(None, "npm4k"))
    image = bind_plan(program.plan, "p", program.device, options).image
    blocks = [block for stream in image.streams for block, _ in stream.blocks()]
    assert [block.is_chained for block in blocks] == [True, False, False]
    assert [block.has_token for block in blocks] == [False, True, True]
    assert [block.names for block in blocks] == [(), (), (blocks[1].position,)]
    assert verify_image(program.plan, image) == []


def require_no_stop(program: LoadedProgram, options: BindOptions) -> Image | None:
    """An image that is proved and comes to its end, or a refusal for want of tokens."""
    try:
        image = bind_plan(program.plan, "p", program.device, options).image
    except InputError as error:
        if {finding.code for finding in error.diagnostics} != {"BND04"}:
            raise
        return None
    assert verify_image(program.plan, image) == []
    assert not time_image(image, compile=False).is_stuck
    return image


@settings(
    max_examples=scaled(100), deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)
@given(scarce_engines(), st.sampled_from([1, 2, 4]))
def test_no_image_stops_for_want_of_tokens(sketch: Sketch, depth: int) -> None:
    program = loaded(program_text(*sketch), None)
    program.require_runnable(["HAZ", "DEC10"])
    uarch = queues_of(depth)
    ideal = require_no_stop(program, BindOptions())
    require_no_stop(program, BindOptions(uarch))
    require_no_stop(program, BindOptions(uarch, may_serialise=True))
    if ideal is not None:  # the same blocks on other hardware: whatever stops there is refused
        machine = replace(ideal.machine, figures=(("queue.depth", depth),))
        other = replace(ideal, machine=machine)
        codes = {finding.code for finding in verify_image(program.plan, other)}
        assert codes == {"TCB89"} or not codes
        assert codes or not time_image(other, compile=False).is_stuck
