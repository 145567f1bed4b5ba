"""Cases with every start and end, derived by hand; `cases` says what things cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nem.run.timing.cases import (
    BUFFERS,
    LITE,
    MID,
    copy,
    device_row,
    lite,
    load,
    row,
    stalls,
)
from tests.nem.run.timing.timed import rows, timed, timed_file

EXAMPLES = Path(__file__).parents[4] / "examples"


def test_a_chain_from_ddr_to_a_store() -> None:
    result = timed(
        LITE
        + """
        buffer A_DDR : DDR (size=4096)
        buffer A_L2 : L2 (size=4096)
        buffer B_L2 : L2 (size=8192)
        buffer Y_L2 : L2 (size=4096)
        buffer A_L1 : L1 (size=4096)
        buffer B_L1 : L1 (size=8192)
        buffer Y_L1 : L1 (size=4096)
        let A = region(A_L1, 0, 4096) elem=f16, shape=[32, 64], layout=MK
        let B = region(B_L1, 0, 8192) elem=f16, shape=[64, 64], layout=KN
        let Y = region(Y_L1, 0, 4096) elem=f16, shape=[32, 64], layout=MN
        tD = transfer.async(dst=region(A_L2, 0, 4096), src=region(A_DDR, 0, 4096))
        tB = transfer.async(dst=B, src=region(B_L2, 0, 8192))
        tA = transfer.async(dst=A, src=region(A_L2, 0, 4096), deps=[tD])
        tG = gemm.async in A, B out Y deps=[tA, tB] accum_type=f32
        tR = relu.async in Y out Y @materialized deps=[tG]
        tS = store.async(dst=region(Y_L2, 0, 4096), src=Y, deps=[tR])
        """
    )
    assert rows(result) == [
        device_row("tD", 0, 144, "sDMA[0]"),  # 16 + 4096 / 32
        row("tB", 0, 260, "DMA[0]"),  # 4 + 8192 / 32
        row("tA", 144, 276, "DMA[1]"),  # 4 + 4096 / 32; DMA[0] is busy
        row("tG", 276, 342, "NMU[0]"),  # 2 + 32 * 64 * 64 / 2048
        row("tR", 342, 351, "CSTL[0]"),  # 1 + 2048 / 256
        row("tS", 351, 483, "CSTL[1]"),  # 4 + 4096 / 32; free since 0, CSTL[0] since 351
    ]
    assert result.cycles == 483
    assert [task["engine"] for task in result.tasks] == [None, 0, 0, 0, 0, 0]
    assert stalls(result)["tG"] == (0, 276, 0, 0)


def test_two_dmas_work_in_parallel() -> None:
    result = lite(f"a = {load(1024)}", f"b = {load(2048)}")
    assert rows(result) == [row("a", 0, 36, "DMA[0]"), row("b", 0, 68, "DMA[1]")]
    assert result.cycles == 68


def test_three_transfers_share_two_dmas() -> None:
    result = lite(f"a = {load(1024)}", f"b = {load(640)}", f"c = {load(320)}", f"d = {load(32)}")
    assert rows(result) == [
        row("a", 0, 36, "DMA[0]"),
        row("b", 0, 24, "DMA[1]"),
        row("c", 24, 38, "DMA[1]"),  # the first to be free
        row("d", 36, 41, "DMA[0]"),
    ]
    assert stalls(result)["c"] == (0, 0, 0, 24)
    assert stalls(result)["d"] == (0, 0, 0, 36)


def test_of_units_that_became_free_together_the_lowest_is_taken() -> None:
    result = lite(*(f"{name} = {load()}" for name in "abcd"))
    assert rows(result) == [
        row("a", 0, 36, "DMA[0]"),
        row("b", 0, 36, "DMA[1]"),
        row("c", 36, 72, "DMA[0]"),
        row("d", 36, 72, "DMA[1]"),
    ]


def test_of_free_units_the_one_that_was_free_first_is_taken() -> None:
    result = lite(
        f"a = {load(1024)}",
        f"b = {load(640)}",
        f"c = {load(32, 'a')}",
        f"d = {load(32, 'c')}",
    )
    assert rows(result) == [
        row("a", 0, 36, "DMA[0]"),
        row("b", 0, 24, "DMA[1]"),
        row("c", 36, 41, "DMA[1]"),  # free since 24; DMA[0] since 36
        row("d", 41, 46, "DMA[0]"),  # free since 36; DMA[1] since 41
    ]


LOOP = ("    t = " + load(), "    r = relu.async in X out Y deps=[t]", "endloop")


def test_a_window_of_one_runs_iteration_after_iteration() -> None:
    result = lite("loop i in [0..3]:", *LOOP)
    # relu of 512 elements: 1 + 2 = 3, so an iteration takes 39.
    assert rows(result) == [
        row("t", 0, 36, "DMA[0]", 0),
        row("r", 36, 39, "CSTL[0]", 0),
        row("t", 39, 75, "DMA[1]", 1),
        row("r", 75, 78, "CSTL[1]", 1),
        row("t", 78, 114, "DMA[0]", 2),
        row("r", 114, 117, "CSTL[0]", 2),
        row("t", 117, 153, "DMA[1]", 3),
        row("r", 153, 156, "CSTL[1]", 3),
    ]
    assert stalls(result)["t[3]"] == (117, 0, 0, 0)
    assert stalls(result)["r[3]"] == (117, 36, 0, 0)


def test_a_window_of_two_runs_two_at_a_time() -> None:
    result = lite("loop i in [0..3] @max_in_flight(2):", *LOOP)
    assert rows(result) == [
        row("t", 0, 36, "DMA[0]", 0),
        row("r", 36, 39, "CSTL[0]", 0),
        row("t", 0, 36, "DMA[1]", 1),
        row("r", 36, 39, "CSTL[1]", 1),
        row("t", 39, 75, "DMA[0]", 2),
        row("r", 75, 78, "CSTL[0]", 2),
        row("t", 39, 75, "DMA[1]", 3),
        row("r", 75, 78, "CSTL[1]", 3),
    ]


def test_a_window_of_three_is_held_up_by_two_dmas() -> None:
    result = lite("loop i in [0..3] @max_in_flight(3):", *LOOP)
    assert rows(result) == [
        row("t", 0, 36, "DMA[0]", 0),
        row("r", 36, 39, "CSTL[0]", 0),
        row("t", 0, 36, "DMA[1]", 1),
        row("r", 36, 39, "CSTL[1]", 1),
        row("t", 36, 72, "DMA[0]", 2),
        row("r", 72, 75, "CSTL[0]", 2),
        row("t", 39, 75, "DMA[1]", 3),  # when iteration 0 is complete
        row("r", 75, 78, "CSTL[1]", 3),  # free since 39; CSTL[0] since 75
    ]
    assert stalls(result)["t[2]"] == (0, 0, 0, 36)
    assert stalls(result)["t[3]"] == (39, 0, 0, 0)


def test_a_window_slides_over_the_oldest_iteration_that_is_not_complete() -> None:
    # Iteration 0 loads 1024 bytes, the others 32: 1 is complete at 5, yet 2 waits for 0.
    result = lite(
        "loop i in [0..2] @max_in_flight(2):",
        "    t = " + load("1024 - (i + 1) / 2 * 992"),
        "endloop",
    )
    assert rows(result) == [
        row("t", 0, 36, "DMA[0]", 0),
        row("t", 0, 5, "DMA[1]", 1),
        row("t", 36, 41, "DMA[1]", 2),
    ]


def test_tasks_without_a_place_take_the_engines_in_turn() -> None:
    result = timed(
        MID
        + "buffer M : L2 (size=4096)\nbuffer N : L2 (size=4096)\nbuffer P : L1[1] (size=4096)\n"
        + "\n".join(
            [
                f"a = {copy('N', 'M', 1024)}",
                f"b = {copy('N', 'M', 1024)}",
                f"c = {copy('N', 'M', 64, on='@seq_engine(1)')}",
                f"d = {copy('N', 'M', 32)}",
                f"e = {copy('P', 'M', 32)}",
                f"f = {copy('N', 'M', 32)}",
            ]
        )
        + "\n"
    )
    assert rows(result) == [
        row("a", 0, 36, "DMA[0]@0"),
        row("b", 0, 36, "DMA[0]@1"),
        row("c", 0, 6, "DMA[1]@1"),  # asked for: does not count as a turn
        row("d", 0, 5, "DMA[1]@0"),
        row("e", 6, 11, "DMA[1]@1"),  # its L1
        row("f", 11, 16, "DMA[1]@1"),
    ]
    assert [task["engine"] for task in result.tasks] == [0, 1, 1, 0, 1, 1]


def test_the_engine_of_a_task_may_vary_by_iteration() -> None:
    result = timed(
        MID
        + "buffer M : L2 (size=4096)\nbuffer N : L2 (size=4096)\n"
        + "loop i in [0..3] @max_in_flight(4):\n"
        + "t = transfer.async(dst=region(N, i * 64, 32), src=region(M, i * 64, 32)) "
        + "@seq_engine(i / 2) @resource(DMA[0])\nendloop\n"
    )
    assert rows(result) == [
        row("t", 0, 5, "DMA[0]@0", 0),
        row("t", 5, 10, "DMA[0]@0", 1),
        row("t", 0, 5, "DMA[0]@1", 2),
        row("t", 5, 10, "DMA[0]@1", 3),
    ]


def test_a_transfer_between_ddr_and_l1_occupies_both_units() -> None:
    lines = (
        f"a = {copy('P', 'D', 4096)}",
        f"b = {load(32)}",
        f"c = {copy('M', 'D', 32)}",
        f"d = {load(32)}",
    )
    assert rows(lite(*lines)) == [
        row("a", 0, 144, "sDMA[0]+DMA[0]@0"),  # sDMA 16 + 128, DMA 4 + 128
        row("b", 0, 5, "DMA[1]"),
        device_row("c", 144, 161, "sDMA[0]"),
        row("d", 5, 10, "DMA[1]"),
    ]
    slow = timed(LITE + BUFFERS + "\n".join(lines) + "\n", {"DMA": {"bandwidth": 8}})
    assert rows(slow) == [
        row("a", 0, 516, "sDMA[0]+DMA[0]@0"),  # DMA 4 + 512
        row("b", 0, 8, "DMA[1]"),
        device_row("c", 516, 533, "sDMA[0]"),
        row("d", 8, 16, "DMA[1]"),
    ]
    assert slow.units["sDMA[0]"] == {"busy": 533, "tasks": 2}


def test_both_units_must_be_free_at_once() -> None:
    result = lite(
        f"a = {copy('M', 'D', 32)}",
        f"b = {load(1024)}",
        f"c = {load(2048)}",
        f"d = {copy('P', 'D', 32)}",
        f"e = {copy('N', 'E', 32)}",
    )
    assert rows(result) == [
        device_row("a", 0, 17, "sDMA[0]"),
        row("b", 0, 36, "DMA[0]"),
        row("c", 0, 68, "DMA[1]"),
        # At 17 no DMA is free, so `d` leaves the sDMA to `e`; at 36 the sDMA is gone until 34.
        row("d", 36, 53, "sDMA[0]+DMA[0]@0"),
        device_row("e", 17, 34, "sDMA[0]"),
    ]


def test_a_resource_is_exact_remapped_or_translated() -> None:
    result = lite(
        "a = relu.async in X out Y @resource(CSTL[1])",
        "b = relu.async in X out Y @resource(CSTL[5])",  # 5 mod 2
        "c = relu.async in X out Y @resource(NMU[0])",  # an error, here allowed: any CSTL
        "d = relu.async in X out Y @resource(VPU[0])",  # 4 + 512 / 32
        f"e = {load(1024, on='@resource(DMA[1])')}",
        f"f = {load(1024, on='@resource(DMA[3])')}",
        f"g = {load(32, on='@resource(CSTL[1])')}",  # any DMA
    )
    assert rows(result) == [
        row("a", 0, 3, "CSTL[1]"),
        row("b", 3, 6, "CSTL[1]"),
        row("c", 0, 3, "CSTL[0]"),
        row("d", 0, 20, "VPU[0]"),
        row("e", 0, 36, "DMA[1]"),
        row("f", 36, 72, "DMA[1]"),
        row("g", 0, 5, "DMA[0]"),
    ]


def test_a_resource_may_depend_on_the_iteration() -> None:
    result = lite(
        "loop i in [0..3] @max_in_flight(4):",
        "    r = relu.async in X out Y @resource(CSTL[(i / 2)])",
        "endloop",
    )
    assert rows(result) == [
        row("r", 0, 3, "CSTL[0]", 0),
        row("r", 3, 6, "CSTL[0]", 1),
        row("r", 0, 3, "CSTL[1]", 2),
        row("r", 3, 6, "CSTL[1]", 3),
    ]


def test_waits_and_sync_forms_hold_back_what_follows() -> None:
    result = lite(
        f"a = {load(1024)}",
        f"b = {load(32)}",
        "wait(a)",
        f"c = {load(64)}",
        f"d = {load(32, form='sync')}",
        f"e = {load(96)}",
    )
    assert rows(result) == [
        row("a", 0, 36, "DMA[0]"),
        row("b", 0, 5, "DMA[1]"),
        row("c", 36, 42, "DMA[1]"),  # free since 5
        row("d", 36, 41, "DMA[0]"),
        row("e", 41, 48, "DMA[0]"),  # `d` is complete, `c` need not be
    ]
    assert stalls(result)["e"] == (0, 41, 0, 0)
    (wait,) = (name for name in stalls(result) if name.startswith("wait"))
    assert stalls(result)[wait] == (0, 36, 0, 0)


def test_a_wait_in_an_iteration_holds_back_no_other() -> None:
    result = lite(
        "loop i in [0..1] @max_in_flight(2):",
        f"    a = {load(1024)}",
        "    wait(a)",
        "    r = relu.async in X out Y",
        "endloop",
        f"z = {load(32)}",
    )
    assert rows(result) == [
        row("a", 0, 36, "DMA[0]", 0),
        row("r", 36, 39, "CSTL[0]", 0),
        row("a", 0, 36, "DMA[1]", 1),
        row("r", 36, 39, "CSTL[1]", 1),
        row("z", 39, 44, "DMA[0]"),  # `endloop` joins
    ]
    # What a join waits for is no stall of what follows.
    assert stalls(result)["z"] == (0, 0, 0, 0)


def test_nested_loops() -> None:
    result = lite(
        "loop i in [0..1] @max_in_flight(2):",
        "    loop j in [0..1]:",
        f"        a = {load('1024 - i * 704')}",  # 36, then 4 + 320 / 32 = 14
        "    endloop",
        "    r = relu.async in X out Y",
        "endloop",
        f"z = {load(32)}",
    )
    assert rows(result) == [
        row("a", 0, 36, "DMA[0]", 0, 0),
        row("a", 36, 72, "DMA[1]", 0, 1),  # free since 28, DMA[0] since 36
        row("r", 72, 75, "CSTL[1]", 0),
        row("a", 0, 14, "DMA[1]", 1, 0),
        row("a", 14, 28, "DMA[1]", 1, 1),
        row("r", 28, 31, "CSTL[0]", 1),
        row("z", 75, 80, "DMA[0]"),
    ]


def test_the_example_with_four_cstls() -> None:
    result = timed_file(EXAMPLES / "multi_cstl.nem")
    expected = [row("tB", 0, 2052, "DMA[1]")]  # 4 + 65536 / 32
    for i in range(8):
        # tA takes 4 + 32768 / 32 = 1028 on one DMA, which is what everything waits for: tG takes
        # 2 + 64 * 128 * 256 / 2048 = 1026. Iteration i - 4 is complete 4655 + 1028 (i - 4), before
        # the DMA is free.
        at = 2052 + 1028 * i
        expected += [
            row("tA", at, at + 1028, "DMA[0]", i),
            row("tG", at + 1028, at + 2054, "NMU[0]", i),
            row("tR", at + 2054, at + 2087, f"CSTL[{i % 4}]", i),  # 1 + 8192 / 256
            row("tS", at + 2087, at + 2603, f"CSTL[{i % 4}]", i),  # 4 + 16384 / 32
        ]
    assert rows(result) == expected
    assert result.cycles == 11851


def test_the_example_of_the_whitepaper() -> None:
    result = timed_file(EXAMPLES / "conv2d_relu.nem")
    # tW 4 + 73728 / 32 = 2308, tX 516, tC 3530, tR 99, tS 788 (published: 3528 without latency).
    assert rows(result) == [
        row("tW", 0, 2308, "DMA[0]"),
        row("tX", 0, 516, "DMA[1]", 0),
        row("tC", 2308, 5838, "NMU[0]", 0),
        row("tR", 5838, 5937, "CSTL[0]", 0),
        row("tS", 5937, 6725, "CSTL[1]", 0),
        row("tX", 516, 1032, "DMA[1]", 1),
        row("tC", 5838, 9368, "NMU[0]", 1),
        row("tR", 9368, 9467, "CSTL[0]", 1),
        row("tS", 9467, 10255, "CSTL[1]", 1),
        row("tX", 6725, 7241, "DMA[1]", 2),  # when iteration 0 is complete; free since 1032
        row("tC", 9368, 12898, "NMU[0]", 2),
        row("tR", 12898, 12997, "CSTL[0]", 2),
        row("tS", 12997, 13785, "CSTL[1]", 2),
        row("tX", 10255, 10771, "DMA[0]", 3),  # free since 2308
        row("tC", 12898, 16428, "NMU[0]", 3),
        row("tR", 16428, 16527, "CSTL[0]", 3),
        row("tS", 16527, 17315, "CSTL[1]", 3),
    ]
    assert stalls(result)["tC[2]"] == (6725, 516, 0, 2127)


@pytest.mark.parametrize("text", ["", "let Z = region(P, 0, 64)"])
def test_a_program_without_tasks_takes_no_time(text: str) -> None:
    result = lite(text)
    assert (result.status, result.cycles, rows(result)) == ("completed", 0, [])
    assert result.critical_path == []
    assert result.bounds.largest == 0
    assert result.sentence() == "nothing to do"
