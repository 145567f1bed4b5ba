"""The codes that a run brings up, each met and, beside it, not met.

`test_CODE_...` proves the rule CODE; `test_rule_pages.py` counts on these names.
"""

from __future__ import annotations

import numpy as np
import pytest

from nacre.nem.api import NemInterpreter
from nacre.nem.run.memory import memory
from nacre.nem.run.memory.arrays import RegionView
from neminterp import InputError, RunResult
from tests.conformance.pipelines import (
    BYTES,
    HEAD,
    Unsure,
    codes,
    interpreter,
    pipeline,
    refusal,
    run,
)

GATHER = """
buffer X : L2 (size=4)
buffer I : L2 (size=2)
buffer M : L1 (size=8)
a = transfer.sync(dst=region(M, 0, 4), src=region(X, 0, 4))
b = transfer.sync(dst=region(M, 4, 2), src=region(I, 0, 2))
g = gather.sync
    in region(M, 0, 4) elem=i8, shape=[4], layout=C, region(M, 4, 2) elem=u8, shape=[2], layout=C
    out region(M, 6, 2) elem=i8, shape=[2], layout=C
    axis=0
"""


def run_with(text: str, **inputs: object) -> RunResult:
    interp = NemInterpreter()
    return interp.run(interp.load_string(text), inputs=inputs)


def test_run01_an_index_out_of_range_stops_the_run_and_names_the_element() -> None:
    result = run_with(GATHER, X=bytes([5, 6, 7, 8]), I=bytes([3, 4]))
    assert (result.status, codes(result)) == ("error", ["RUN01"])
    assert "index is 4, expected 0 to 3" in result.diagnostics[0].message
    assert "element [1]" in result.diagnostics[0].message
    assert result.read_region("M[6:8]").tobytes() == b"\xff\xff"  # nothing was written
    good = run_with(GATHER, X=bytes([5, 6, 7, 8]), I=bytes([3, 0]))
    assert (good.status, good.read_region("M[6:8]").tolist()) == ("completed", [8, 5])


def binary(op: str) -> str:
    return f"""
buffer X : L2 (size=8)
buffer M : L1 (size=12)
a = transfer.sync(dst=region(M, 0, 8), src=region(X, 0, 8))
d = {op}.sync
    in region(M, 0, 4) elem=i8, shape=[2, 2], layout=MN,
       region(M, 4, 4) elem=i8, shape=[2, 2], layout=MN
    out region(M, 8, 4) elem=i8, shape=[2, 2], layout=MN
"""


@pytest.mark.parametrize(
    ("op", "second", "says"),
    [("div", [1, 2, 0, 4], "division by zero"), ("pow", [1, 2, -3, 4], "exponent")],
)
def test_run02_what_integers_have_no_answer_for_stops_the_run(
    op: str, second: list[int], says: str
) -> None:
    result = run_with(binary(op), X=np.array([7, -7, 1, 2, *second], np.int8))
    assert (result.status, codes(result)) == ("error", ["RUN02"])
    assert says in result.diagnostics[0].message
    assert "element [1, 0]" in result.diagnostics[0].message


def test_run03_a_sum_that_wraps_is_reported_and_the_run_goes_on() -> None:
    text = """
buffer X : L2 (size=12)
buffer M : L1 (size=16)
a = transfer.sync(dst=region(M, 0, 12), src=region(X, 0, 12))
g = gemm.sync
    in region(M, 0, 2) elem=i8, shape=[1, 2], layout=MK, quant=per_tensor(scale=1.0, zero_point=0),
       region(M, 4, 2) elem=i8, shape=[2, 1], layout=KN, quant=per_tensor(scale=1.0, zero_point=0),
       region(M, 8, 4) elem=i32, shape=[1], layout=N
    out region(M, 12, 1) elem=i8, shape=[1, 1], layout=MN
    accum_type=i32
"""
    data = np.array([1, 1, 0, 0, 1, 1, 0, 0], np.int8).tobytes()
    edge = run_with(text, X=data + np.int32(2**31 - 3).tobytes())
    assert (edge.status, codes(edge), edge.read_region("M[12:13]")[0]) == ("completed", [], 127)
    over = run_with(text, X=data + np.int32(2**31 - 2).tobytes())
    assert (over.status, codes(over)) == ("completed", ["RUN03"])
    assert over.read_region("M[12:13]").view(np.int8)[0] == -128


class Failing(Unsure):
    def execute(
        self, opcode: str, inputs: list[RegionView], output: RegionView, attrs: dict[str, object]
    ) -> None:
        output[...] = 1
        raise RuntimeError("out of paper")


def test_run04_a_backend_that_fails_stops_the_run_and_changes_nothing() -> None:
    interp = interpreter(pipeline())
    interp.set_opcode_backend("relu", Failing())
    result = interp.run(interp.load_string(pipeline()), inputs={"A": BYTES})
    assert (result.status, codes(result), result.tasks) == ("error", ["RUN04"], 1)
    assert "RuntimeError: out of paper" in result.diagnostics[0].message
    assert result.read_region("X_0").tobytes() == BYTES[:16].tobytes()


def test_run05_a_host_that_names_what_is_not_there_is_told_what_is() -> None:
    interp = NemInterpreter()
    with pytest.raises(InputError) as caught:
        interp.run(interp.load_string(pipeline()), inputs={"AA": BYTES, "Y": BYTES[:3]})
    first, second = caught.value.diagnostics
    assert (first.code, first.help) == ("RUN05", "did you mean `A`?")
    assert (second.code, second.message) == ("RUN05", "`Y` has 64 bytes, the data 3")


def test_run06_a_memory_larger_than_the_machine_is_refused_before_it_is_reserved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def reserve(*_: object) -> None:
        pytest.fail("memory was reserved")

    monkeypatch.setattr(memory.MemoryLevel, "__post_init__", reserve)
    with pytest.raises(InputError) as caught:
        NemInterpreter(ddr_size=2**60)
    assert [d.code for d in caught.value.diagnostics] == ["RUN06"]

    interp = NemInterpreter(l2_size=2**60)
    assert refusal(pipeline(), interp) == ["RUN06"]


RACE = """
buffer A : L2 (size=64)
buffer B : L1 (size=64)
t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64))
u = transfer.async(dst=region(B, 32, 32), src=region(A, 0, 32))
"""


def test_run07_a_race_is_met_while_running_when_somebody_looks() -> None:
    interp = NemInterpreter()
    program = interp.load_string(RACE)
    result = interp.run(program, inputs={"A": BYTES}, allow=["HAZ"], detect_races=True)
    assert "RUN07" in codes(result)
    assert codes(interp.run(program, inputs={"A": BYTES}, allow=["HAZ"])) == []
    clean = run(pipeline(" @max_in_flight(4)"))
    assert clean.session is not None
    assert codes(clean) == []


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (["tR[0]"], "`tR[0]`, which must wait for tasks that have not run"),
        (["tX[0]", "tX[0]"], "`tX[0]`, which has run already"),
        (["tX[0]", "tX[1]"], "`tX[1]`, which must wait"),  # no window: one after the other
    ],
)
def test_run08_an_order_that_is_not_legal_stops_where_it_breaks(
    order: list[str], says: str
) -> None:
    interp = NemInterpreter()
    result = interp.run(interp.load_string(pipeline()), inputs={"A": BYTES}, order=order)
    assert (result.status, codes(result)) == ("error", ["RUN08"])
    assert says in result.diagnostics[0].message


def test_run08_an_order_of_another_program_is_refused() -> None:
    interp = NemInterpreter()
    with pytest.raises(InputError, match=r"RUN08.*`tZ`"):
        interp.run(interp.load_string(pipeline()), inputs={"A": BYTES}, order=["tZ"])


@pytest.mark.parametrize("backend", ["npm", "no_such_backend"])
def test_run09_a_backend_that_is_not_there_is_said_to_be_missing(backend: str) -> None:
    with pytest.raises(InputError) as caught:
        NemInterpreter().set_compute_backend(backend)
    (found,) = caught.value.diagnostics
    assert found.code == "RUN09"
    assert f"`{backend}`" in found.message


def test_run09_a_backend_that_lacks_an_opcode_is_refused_before_the_run() -> None:
    interp = interpreter(pipeline())
    interp.set_compute_backend(Unsure())
    text = pipeline().replace("relu", "neg")
    assert refusal(text, interp) == ["RUN09"]


@pytest.mark.parametrize("op", ["core.NoSuchThing", "vendor.secret"])
def test_sig22_an_operation_that_no_backend_knows_is_an_error_when_it_is_to_run(op: str) -> None:
    text = f"""{HEAD}
t = transfer.sync(dst=region(B, 0, 8), src=region(A, 0, 8))
c = compute.sync
    in region(B, 0, 8) elem=i8, shape=[8], layout=C
    out region(B, 8, 8) elem=i8, shape=[8], layout=C
    op="{op}"
"""
    assert refusal(text, interpreter(text)) == ["SIG22"]


def tokens(limit: int) -> str:
    """Three tokens at once: those of `a` and `b` come free when `d` has started, after `c`."""
    return f"""
include "npm_lite.nem"
device small extends npm_lite {{
    unit_characteristics {{ SEQ {{ max_active_tokens = {limit} }} }}
}}
program p:{HEAD}
a = transfer.async(dst=region(B, 0, 8), src=region(A, 0, 8))
b = transfer.async(dst=region(B, 8, 8), src=region(A, 8, 8))
c = store.async(dst=region(Y, 0, 16), src=region(B, 0, 16), deps=[a, b])
d = store.async(dst=region(Y, 0, 16), src=region(B, 0, 16), deps=[a, b, c])
"""


@pytest.mark.parametrize(("limit", "found"), [(2, ["RUN10"]), (3, [])])
def test_run10_a_timed_run_that_waits_for_itself_is_stuck(limit: int, found: list[str]) -> None:
    interp = NemInterpreter()
    interp.set_mode("timed")
    result = interp.run(interp.load_string(tokens(limit)), inputs={"A": BYTES})
    assert (result.status, codes(result)) == ("error" if found else "completed", found)
    if found:
        assert "`c`" in result.diagnostics[0].message


@pytest.mark.parametrize(
    "profile",
    [{"NMU": {"speed": 3}}, {"GPU": {"latency": 1}}, {"DMA": {"bandwidth": 0}}, {"DMA": 3}],
)
def test_run11_a_profile_that_cannot_be_meant_is_refused(profile: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        NemInterpreter().set_timing_profile(profile)  # type: ignore[arg-type]
    assert {d.code for d in caught.value.diagnostics} == {"RUN11"}


@pytest.mark.parametrize(("offset", "found"), [(0, []), (4, ["RUN12"])])
def test_run12_bytes_outside_a_buffer_that_were_allowed_stop_the_run(
    offset: int, found: list[str]
) -> None:
    interp = NemInterpreter()
    program = interp.load_string(
        "buffer A : L2 (size=4)\nbuffer B : L2 (size=8)\n"
        f"t = transfer.sync(dst=region(B, 0, 4), src=region(A, {offset}, 4))\n"
    )
    result = interp.run(program, inputs={"A": BYTES[:4], "B": bytes(8)}, allow=["EXT"])
    assert codes(result) == found
    assert result.read_buffer("B") == (bytes(8) if found else bytes(BYTES[:4]) + bytes(4))


def test_run12_a_buffer_without_a_memory_keeps_the_run_from_starting() -> None:
    interp = NemInterpreter()
    program = interp.load_string("buffer A : L1[7] (size=4)\n")
    with pytest.raises(InputError) as caught:
        interp.run(program, allow=["BUF05"])
    assert [d.code for d in caught.value.diagnostics] == ["RUN12"]
    assert [r.message.partition(":")[0] for r in caught.value.diagnostics[0].related] == ["BUF05"]
