"""What the functional machine does with operands of every kind, and where it must stop."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

import nacre
from nacre.base.compression_forms import CompressionForm
from nacre.base.diagnostics import InputError
from nacre.base.weight_compression import compress
from nacre.tcb.image import STREAM, Image, Operand, Origin, Port, Repeat, counter
from nacre.tcb.machine.run import ImageRun, run_image
from tests.tcb.machine.bound import loaded, random_contents, require_same_bytes
from tests.tcb.machine.images import after, at, compute, copy, image, stream, tag

BYTES = bytes(range(256)) * 2


def finished(of: Image, **inputs: bytes) -> ImageRun:
    result = run_image(of, inputs or {"in": BYTES})
    assert result.status == "completed", result.diagnostics
    return result


PROGRAMS = {
    "truth values": """
buffer A : L1 (size=64)
buffer B : L1 (size=64)
buffer T : L1 (size=16)
a = compute.sync in region(A, 0, 16) elem=i8, shape=[16], layout=C,
      region(B, 0, 16) elem=i8, shape=[16], layout=C
    out region(T, 0, 16) elem=u8, shape=[16], layout=C op="core.Compare.Lt"
b = compute.sync in region(T, 0, 16) elem=u8, shape=[16], layout=C,
      region(A, 0, 16) elem=i8, shape=[16], layout=C,
      region(B, 16, 16) elem=i8, shape=[16], layout=C
    out region(B, 32, 16) elem=i8, shape=[16], layout=C op="core.Where"
""",
    "elements of four bits": """
buffer A : L1 (size=64)
buffer B : L2 (size=64)
a = store.sync(dst=region(B, 3, 6) elem=i4, shape=[3, 4], strides=[4, 1],
    src=region(A, 0, 8) elem=i4, shape=[3, 4], strides=[5, 1])
""",
    "a store that quantises": """
include "npm4k.nem"
device npm4k
buffer A : L1 (size=64)
buffer B : L2 (size=64)
a = store.sync(dst=region(B, 1, 16) elem=i8, shape=[16], layout=C,
      quant=per_tensor(scale=0.5, zero_point=3),
    src=region(A, 0, 32) elem=f16, shape=[16], layout=C)
""",
    "shapes that vary": """
buffer A : L1 (size=64)
buffer B : L1 (size=64)
loop i in [1..4] @max_in_flight(2):
    loop j in [0..i]:
        a = relu.async in region(A, i * 8, i) elem=i8, shape=[i], layout=C
            out region(B, i * 8 + j, i) elem=i8, shape=[i], layout=C
    endloop
endloop
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_operands_of_every_kind_leave_the_bytes_of_nem(name: str) -> None:
    text = PROGRAMS[name]
    program = loaded(text, None if "device " in text else "npm_lite")
    program.require_runnable(["HAZ", "SIG"])
    require_same_bytes(program, random_contents(program, 1), range(4))


def test_a_transfer_decompresses_its_source() -> None:
    form = CompressionForm("palette", 2)
    plain = np.random.default_rng(1).choice(np.array([3, 7, 250, 0], np.uint8), 32)
    stored = compress(plain, 32, 8, form)
    assert stored is not None
    source = Operand("DDR", 0, "i8", (32,), compression=form, compressed_bytes=stored.size)
    of = image(stream(copy(0, source, at("L2", 8, 32))))
    given = stored.tobytes() + bytes(512 - stored.size)
    assert finished(of, **{"in": given}).read("l2")[8:40] == plain.tobytes()
    missing = run_image(of, {})
    assert missing.status == "completed"
    assert missing.read("l2") == b"\xff" * 1024


def test_repeats_count_from_their_start_and_continue_each_other() -> None:
    c = counter(0)
    one = Repeat(0, 3, (copy(1, at("DDR", c, 1), at("L2", c, 1)),))
    two = Repeat(0, 2, (copy(1, at("DDR", c, 1), at("L2", c, 1)),), 3)
    found = finished(image(stream(one, two))).read("l2")
    assert found[:6] == bytes([0, 1, 2, 3, 4, 255])


def test_a_value_that_streams_is_never_written() -> None:
    streamed = Operand(STREAM, 0, "i8", (16,))
    of = image(
        stream(
            copy(0, at("DDR", 0, 64), at("L1[0]", 0, 64), signal=tag(0)),
            compute(1, "neg", (at("L1[0]", 0, 16),), streamed, after(0), is_chained=True,
                    signal=tag(0)),
            compute(2, "neg", (streamed,), at("L1[0]", 100, 16), after(0, 2)),
        )
    )  # fmt: skip
    found = finished(of).read("l1[0]")
    assert found[100:116] == bytes(range(16))
    assert found[64:100] == b"\xff" * 36


def test_streams_of_several_iterations_do_not_mix() -> None:
    c = counter(0)
    streamed = Operand(STREAM, 0, "i8", (4,))
    body = (
        compute(2, "neg", (at("L1[0]", c, 4),), streamed, after(0), is_chained=True, signal=tag(1)),
        compute(3, "neg", (streamed,), at("L1[0]", 100, 4), after(1, 8)),
    )
    first = copy(0, at("DDR", 0, 64), at("L1[0]", 0, 64), signal=tag(0))
    of = image(stream(first, Repeat(1, 8, body)))
    for seed in range(8):
        result = run_image(of, {"in": BYTES}, seed=seed)
        last = result.instances.counters(result.order[-1])[0]
        assert result.read("l1[0]")[100:104] == bytes(range(last, last + 4))


def test_blocks_that_stream_into_each_other_stand_where_the_last_of_them_is() -> None:
    streamed = Operand(STREAM, 0, "i8", (16,))
    between = copy(2, at("L1[0]", 0, 16), at("L1[0]", 200, 16), after(0))
    of = image(
        stream(
            between,
            compute(1, "neg", (at("L1[0]", 0, 16),), streamed, is_chained=True),
            compute(3, "neg", (streamed,), at("L1[0]", 0, 16), signal=tag(0)),
        )
    )
    for seed in (None, 1, 2, 3):
        result = run_image(of, {"l1[0]": BYTES * 2}, seed=seed)
        assert result.status == "completed", result.diagnostics
        assert [result.instances.block_of(n).block.position for n in result.order] == [1, 3, 2]


def test_a_consumer_before_its_producer_is_a_finding() -> None:
    streamed = Operand(STREAM, 0, "i8", (16,))
    of = image(
        stream(
            compute(1, "neg", (at("L1[0]", 0, 16),), streamed, after(0), is_chained=True),
            compute(2, "neg", (streamed,), at("L1[0]", 100, 16), signal=tag(0)),
        )
    )
    result = run_image(of, {"l1[0]": bytes(1024)})
    assert result.status == "stuck"
    (finding,) = result.diagnostics
    assert finding.code == "TCB51"
    assert "what streams into it" in finding.message


def test_a_stream_from_nowhere_is_a_finding() -> None:
    streamed = Operand(STREAM, 0, "i8", (16,))
    of = image(stream(compute(2, "neg", (streamed,), at("L1[0]", 100, 16))))
    result = run_image(of, {"l1[0]": bytes(1024)})
    assert result.status == "failed"
    assert [d.code for d in result.diagnostics] == ["TCB59"]


def test_poison_travels_and_is_reported_once_for_an_operand() -> None:
    body = copy(1, at("L2", 0, 16), at("L1[0]", 0, 16), signal=tag(0))
    use = Repeat(2, 4, (compute(3, "neg", (at("L1[0]", 0, 16),), at("L1[0]", 32, 16), after(0)),))
    result = run_image(image(stream(body, use)), {})
    assert result.status == "completed"
    assert [(d.code, d.severity) for d in result.diagnostics] == [("TCB54", "warning")]


def test_faults_name_the_task_and_its_line() -> None:
    divide = compute(4, "div", (at("DDR", 0, 4), at("DDR", 0, 4)), at("L2", 0, 4))
    of = image(stream(divide), origins=(Origin(4, "quotient", 12),))
    result = run_image(of, {"in": bytes(512)})
    (finding,) = result.diagnostics
    assert result.status == "failed"
    assert (finding.code, finding.location.line) == ("TCB55", 12)
    assert finding.message.startswith("`quotient` cannot go on: ")
    assert result.read("l2") == b"\xff" * 1024


def test_a_run_that_cannot_go_on_says_who_waits_for_what() -> None:
    of = image(
        stream(
            copy(1, at("DDR", 0, 4), at("L2", 0, 4), after(0), signal=tag(1)),
            copy(2, at("DDR", 0, 4), at("L2", 4, 4), after(1), signal=tag(0)),
            copy(3, at("DDR", 0, 4), at("L2", 8, 4), signal=tag(2)),
        ),
        origins=(Origin(1, "a", 7), Origin(2, "b", 8)),
    )
    for seed in (None, 1):
        result = run_image(of, {"in": BYTES}, seed=seed)
        assert result.status == "stuck"
        (finding,) = result.diagnostics
        assert (finding.code, finding.location.line) == ("TCB51", 7)
        assert finding.message == (
            "the run cannot go on: `a` waits for d.t0 at 1 (it is at 0), "
            "`b` waits for d.t1 at 1 (it is at 0)"
        )
        assert result.read("l2")[8:12] == BYTES[:4]


def test_what_cannot_run_is_a_finding() -> None:
    unknown = compute(1, "frobnicate", (at("DDR", 0, 4),), at("L2", 0, 4))
    misfit = compute(1, "add", (at("DDR", 0, 4), at("DDR", 0, 3)), at("L2", 0, 4))
    codes = []
    for item in (unknown, misfit, copy(1, at("DDR", 0, 4), at("L3", 0, 4))):
        result = run_image(image(stream(item)), {"in": BYTES})
        assert result.status == "failed"
        codes += [d.code for d in result.diagnostics]
    assert codes == ["TCB52", "TCB52", "TCB53"]


def test_an_operand_that_leaves_its_memory_is_found_before_anything_is_touched() -> None:
    block = copy(2, at("DDR", 0, 8), at("L2", counter(0), 8))
    result = run_image(image(stream(Repeat(0, 1018, (block,)))), {"in": BYTES})
    (finding,) = result.diagnostics
    assert finding.code == "TCB53"
    assert "`task at 2[1017]` has an operand at bytes 1017 to 1025 of L2" in finding.message
    assert result.order == ()


@pytest.mark.parametrize("given", [{"in": b"ab"}, {"inn": b""}])
def test_data_that_does_not_fit_is_refused(given: dict[str, bytes]) -> None:
    with pytest.raises(InputError) as caught:
        run_image(image(stream()), given)
    assert [d.code for d in caught.value.diagnostics] == ["TCB58"]


def test_arrays_of_any_type_fill_ports() -> None:
    of = image(stream(copy(0, at("DDR", 0, 512), at("DDR", 512, 512))))
    values = np.arange(256, dtype=np.int16)
    assert run_image(of, {"in": values}).read("out") == values.tobytes()


def test_reals_that_integers_do_not_have_are_counted() -> None:
    port = Port("in", "input", "DDR", 0, 4, "i8", (4,), "f32", (0.5,), (3,))
    changed = replace(image(stream()), ports=(port,))
    given = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    (found,) = nacre.TcbImage(changed).run({"in": given}).diagnostics
    assert (found.code, found.severity) == ("TCB60", "warning")
    assert "1 NaN and 2 infinities among 4" in found.message
    assert nacre.TcbImage(changed).run({"in": np.zeros(4, np.float32)}).diagnostics == ()
    assert nacre.TcbImage(changed).run({"in": np.zeros(4, np.int8)}).diagnostics == ()
