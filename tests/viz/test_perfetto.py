"""Traces for Perfetto, read back with Perfetto's own schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre.nem.run.timing.result import TimedResult
from nacre.viz.perfetto import packets, varint, write_perfetto
from neminterp import NemInterpreter

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.nem"))
BEGIN, END, COUNTER = 1, 2, 4


def timed(path: Path) -> TimedResult:
    interp = NemInterpreter()
    return interp.time(interp.load(path))


def parsed(data: bytes) -> Any:  # noqa: ANN401 - a message of the schema
    schema = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = schema.Trace()
    trace.ParseFromString(data)
    return trace


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 1 << 20, (1 << 63) - 1])
def test_a_varint_reads_back(value: int) -> None:
    read = 0
    for shift, byte in enumerate(varint(value)):
        read |= (byte & 0x7F) << (7 * shift)
    assert read == value


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_task_is_a_slice_on_the_tracks_of_its_units(path: Path) -> None:
    result = timed(path)
    trace = parsed(b"".join(packets(result)))
    names = {n.iid: n.name for n in trace.packet[0].interned_data.event_names}
    tracks = {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet
              if p.HasField("track_descriptor")}  # fmt: skip
    open_slices: dict[int, tuple[str, int]] = {}
    found = []
    for item in trace.packet:
        event = item.track_event
        if event.type == BEGIN:
            assert event.track_uuid not in open_slices, "two tasks on one unit at once"
            open_slices[event.track_uuid] = (names[event.name_iid], item.timestamp)
        elif event.type == END:
            name, start = open_slices.pop(event.track_uuid)
            found.append((tracks[event.track_uuid], name, start, item.timestamp))
    assert not open_slices
    expected = [
        (unit, row["name"] if "@" not in row["name"] else row["op"], row["start"], row["end"])
        for row in result.tasks
        for unit in row["unit"].split("+")
    ]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_flows_join_a_task_to_those_that_name_its_token(path: Path) -> None:
    result = timed(path)
    trace = parsed(b"".join(packets(result)))
    ends: dict[int, int] = {}
    for item in trace.packet:
        for flow in item.track_event.flow_ids:
            ends[flow] = ends.get(flow, 0) + 1
    steps = result.timeline.steps
    named = {d for task in steps.plan.program.tasks for d in task.deps}
    instances = {int(s) + 1 for d in named for s in steps.numbers[d]}
    assert set(ends) == instances
    assert min(ends.values()) >= 2, "an arrow without an end"


def test_counters_say_how_full_memories_are_and_how_many_tokens_live() -> None:
    result = timed(EXAMPLES[0].parent / "conv2d_relu.nem")
    trace = parsed(b"".join(packets(result)))
    tracks = {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet
              if p.HasField("track_descriptor")}  # fmt: skip
    values: dict[str, list[tuple[int, int]]] = {}
    for item in trace.packet:
        if item.track_event.type == COUNTER:
            series = values.setdefault(tracks[item.track_event.track_uuid], [])
            series.append((item.timestamp, item.track_event.counter_value))
    assert set(values) == {"L2 bytes", "L1[0] bytes", "tokens of engine 0"}
    assert all(series == sorted(series) for series in values.values())
    assert max(v for _, v in values["L1[0] bytes"]) == 32768 + 73728 + 50176
    limit = result.timeline.profile.get("SEQ", "max_active_tokens")
    assert limit is not None
    assert 0 < max(v for _, v in values["tokens of engine 0"]) <= limit
    assert values["tokens of engine 0"][-1][1] == 0


def test_a_million_events_would_stay_below_100_megabytes(tmp_path: Path) -> None:
    interp = NemInterpreter()
    text = """
    buffer X : L2 (size=65536)
    buffer B : L1 (size=8192)
    loop i in [0..4999] @max_in_flight(2):
        let s = region(B, (i mod 2) * 4096, 4096) elem=i8, shape=[4096], layout=C
        tI = transfer.async(dst=s, src=region(X, (i mod 16) * 4096, 4096))
        tR = relu.async in s out s deps=[tI]
    endloop
    """
    result = interp.time(interp.load_string(text))
    path = tmp_path / "many.perfetto-trace"
    write_perfetto(result, path)
    events = 2 * int(np.count_nonzero(result.timeline.unit >= 0))
    assert events == 20_000
    assert path.stat().st_size / events < 100
