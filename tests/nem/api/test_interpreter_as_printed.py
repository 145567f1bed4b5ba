"""Every call that the interpreter's specification prints, run as it prints it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neminterp import DeviceConfig, InputError, NemInterpreter, Session
from tests.nem.api.programs import PIPELINE, STEPS, expected, tiles, write_program

DEVICE = """
include "npm_lite.nem"
device my_board extends npm_lite {
    topology {
        num_engines = 2
        l2_size_bytes = 65536
        device_units { sDMA = 1 }
        per_engine { NMU = 1 CSTL = 2 DMA = 2 VPU = 1 SEQ = 1 l1_size_bytes = 8192 }
    }
}
"""


def filled(program_inputs: bool = True) -> tuple[NemInterpreter, dict[str, Any]]:
    x, w = tiles()
    return NemInterpreter(device="npm_lite"), {"X_DDR": x, "W_DDR": w} if program_inputs else {}


# 3.1 Core Interpreter Class


def test_an_interpreter_takes_the_path_of_a_device(tmp_path: Path) -> None:
    (tmp_path / "device.cfg").write_text(DEVICE, encoding="utf-8")
    interp = NemInterpreter(device=str(tmp_path / "device.cfg"))
    dev = interp.get_device_info()
    assert (dev.name, dev.num_engines, dev.l1_size_bytes) == ("my_board", 2, 8192)


def test_an_interpreter_takes_the_name_of_a_built_in_device() -> None:
    interp = NemInterpreter(device="npm_lite")
    dev = interp.get_device_info()
    assert dev.name == "npm_lite"
    assert dev.num_engines == 1
    assert {unit: dev.per_engine[unit] for unit in ("NMU", "CSTL", "DMA")} == {
        "NMU": 1,
        "CSTL": 2,
        "DMA": 2,
    }
    assert "gemm.float<f16>.no_bias" in dev.effective_types["gemm"]


def test_without_a_device_only_baseline_types_are_there() -> None:
    bare = NemInterpreter().get_device_info()
    large = NemInterpreter(device="npm4k").get_device_info()
    assert set(bare.effective_types["gemm"]) < set(large.effective_types["gemm"])


# 3.2 Program Loading


def test_a_program_is_loaded_from_a_file(tmp_path: Path) -> None:
    interp = NemInterpreter()
    program = interp.load(write_program(tmp_path))
    assert program.name == "matmul_example"
    assert program.is_program


def test_a_program_is_loaded_from_an_indented_string() -> None:
    interp = NemInterpreter()
    program = interp.load_string("""
        program matmul_example:
        buffer A_DDR : DDR (size=4096, align=64)
        buffer B_DDR : DDR (size=4096, align=64)
        t = transfer.sync(dst=region(B_DDR, 0, 4096), src=region(A_DDR, 0, 4096))
    """)
    assert program.name == "matmul_example"
    result = interp.run(program, inputs={"A_DDR": bytes(range(256)) * 16})
    assert result.read_buffer("B_DDR") == bytes(range(256)) * 16


def test_a_program_is_parsed_without_more(tmp_path: Path) -> None:
    interp = NemInterpreter()
    ast = interp.parse(write_program(tmp_path))
    assert ast.header is not None
    assert ast.header.name is not None
    assert ast.header.name.name == "matmul_example"
    with pytest.raises(InputError):
        interp.parse(write_program(tmp_path, "loop loop\n", "broken.nem"))


def test_a_program_is_validated_and_its_findings_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    interp = NemInterpreter()
    assert interp.validate(interp.load(write_program(tmp_path))) == []

    path = write_program(tmp_path, PIPELINE.replace("deps=[tX]", "deps=[tZ]"), "broken.nem")
    program = interp.load(path)
    diagnostics = interp.validate(program)
    for d in diagnostics:
        print(f"{d.severity}: {d.message} at {d.location}")  # noqa: T201 - as printed

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(diagnostics) > 0
    assert lines[0].startswith("error: ")
    assert "`tZ`" in lines[0]
    assert f" at {path}:24:" in lines[0]


# 3.3 Execution Control


def test_a_program_is_run_to_its_end() -> None:
    interp, inputs = filled()
    program = interp.load_string(PIPELINE)
    result = interp.run(program, inputs=inputs)
    assert result.status == "completed"
    assert result.cycle_count is None
    assert result.diagnostics == ()
    assert result.tasks == STEPS - 1  # one is a wait


def test_the_mode_is_switched_as_printed() -> None:
    interp, inputs = filled()
    program = interp.load_string(PIPELINE)
    interp.set_mode("functional")
    assert interp.run(program, inputs=inputs).cycle_count is None
    interp.set_mode("timed")
    interp.set_timing_profile(
        {
            "NMU": {"mac_throughput": 4096, "latency": 2},
            "CSTL": {"eltwise_throughput": 256, "latency": 1},
            "DMA": {"bandwidth": 32, "latency": 4},
        }
    )
    result = interp.run(program, inputs=inputs)
    assert (result.cycle_count or 0) > 0
    assert result.read_buffer("Y_DDR") == expected(*tiles()).tobytes()
    with pytest.raises(InputError, match="mode is `quick`"):
        interp.set_mode("quick")


def test_a_program_is_run_step_by_step_as_printed() -> None:
    interp, inputs = filled()
    program = interp.load_string(PIPELINE)
    session = interp.start(program, inputs=inputs)

    task_result = session.step()
    assert task_result.task_id == "tL"
    assert task_result.task_type == "transfer.async"
    assert task_result.status == "completed"
    assert task_result.token == "tL"

    results = session.step(n=5)
    assert [r.task_id for r in results] == ["tV", "tW", "wait@17", "tX[0]", "tC[0]"]

    session.run_until(token="tC")
    assert session.get_completed_tasks()[-1] == "tC[1]"

    session.add_breakpoint(task="tR")
    session.add_breakpoint(line=26)
    session.add_breakpoint(loop_iter=3)
    stopped = session.run()
    assert stopped.status == "breakpoint"
    assert session.next_step == "tR[1]"

    session.continue_()
    assert session.next_line == 26
    admitted = session.continue_()  # tS[1] completes iteration 1, which admits iteration 3
    assert "iteration 3" in (admitted.reason or "")

    session.clear_stops()
    session.step_iteration()
    assert session.run().status == "completed"


# 3.5 DDR Data Management, 7.3 DDR Pre-loading and Post-read


def test_ddr_is_written_and_read_as_printed(tmp_path: Path) -> None:
    interp = NemInterpreter()
    interp.ddr_write(offset=0, data=bytes(4096))
    assert interp.ddr_read(offset=0, size=4096) == bytes(4096)

    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float16)
    interp.ddr_write_tensor(offset=0, tensor=weights)
    assert interp.ddr_read(offset=0, size=8192) == weights.tobytes()

    (tmp_path / "weights.bin").write_bytes(bytes(range(256)) * 32)
    np.save(tmp_path / "weights.npy", weights)
    interp.ddr_load_file(offset=0, path=str(tmp_path / "weights.bin"))
    assert interp.ddr_read(offset=0, size=4096) == bytes(range(256)) * 16
    interp.ddr_load_npy(offset=0, path=str(tmp_path / "weights.npy"))

    output = interp.ddr_read(offset=0, size=4096)
    output_tensor = interp.ddr_read_tensor(offset=0, shape=(64, 64), dtype=np.float16)
    assert output == weights.tobytes()[:4096]
    assert (output_tensor.shape, output_tensor.dtype) == ((64, 64), np.float16)
    np.testing.assert_array_equal(output_tensor, weights)


def test_the_size_of_ddr_is_chosen_and_its_use_is_told() -> None:
    interp = NemInterpreter(device="npm_lite", ddr_size=512 * 1024 * 1024)
    info = interp.ddr_info()
    assert (info.size, info.allocated, info.free) == (512 * 1024 * 1024, 0, 512 * 1024 * 1024)
    assert NemInterpreter().ddr_info().size == 256 * 1024 * 1024

    interp.load_string(PIPELINE)
    info = interp.ddr_info()
    assert info.allocated == 4096 + 512 + 4096
    assert info.free == info.size - info.allocated


CONVOLUTION = """
program conv2d_relu:
buffer X_DDR : DDR (size=262144, align=64)
buffer W_DDR : DDR (size=36864, align=64)
buffer B_DDR : DDR (size=256, align=64)
buffer Y_DDR : DDR (size=262144, align=64)
buffer X_L1 : L1 (size=262144, align=64)
buffer W_L1 : L1 (size=36864, align=64)
buffer B_L1 : L1 (size=256, align=64)
buffer Y_L1 : L1 (size=131072, align=64)
let X_0 = region(X_L1, 0, 135168)
    elem=i8, shape=[1, 33, 64, 64], layout=NHWC, quant=per_tensor(scale=1.0, zero_point=0)
let X_1 = region(X_L1, 126976, 135168)
    elem=i8, shape=[1, 33, 64, 64], layout=NHWC, quant=per_tensor(scale=1.0, zero_point=0)
let W = region(W_L1, 0, 36864)
    elem=i8, shape=[3, 3, 64, 64], layout=HWIO, quant=per_tensor(scale=1.0, zero_point=0)
let B = region(B_L1, 0, 256) elem=i32, shape=[64], layout=C
let Y = region(Y_L1, 0, 131072)
    elem=i8, shape=[1, 32, 64, 64], layout=NHWC, quant=per_tensor(scale=4096.0, zero_point=0)
tX = transfer.async(dst=region(X_L1, 0, 262144), src=region(X_DDR, 0, 262144))
tW = transfer.async(dst=W, src=region(W_DDR, 0, 36864))
tB = transfer.async(dst=B, src=region(B_DDR, 0, 256))
tC = conv2d.async in X_0, W, B out Y deps=[tX, tW, tB]
    pads=[1, 1, 0, 1] strides=[1, 1] dilations=[1, 1] groups=1 accum_type=i32
tR = relu.async in Y out Y deps=[tC]
tY = transfer.async(dst=region(Y_DDR, 0, 131072), src=Y, deps=[tR])
tD = conv2d.async in X_1, W, B out Y deps=[tY]
    pads=[0, 1, 1, 1] strides=[1, 1] dilations=[1, 1] groups=1 accum_type=i32
tS = relu.async in Y out Y deps=[tD]
tZ = transfer.async(dst=region(Y_DDR, 131072, 131072), src=Y, deps=[tS])
"""


def compute_reference_conv2d_relu(
    x: np.ndarray[Any, Any], w: np.ndarray[Any, Any], b: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Exact sums in int64, one tap of the kernel after the other."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    total = np.zeros((1, 64, 64, 64), np.int64)
    for row in range(3):
        for column in range(3):
            part = padded[:, row : row + 64, column : column + 64].reshape(-1, 64)
            total += (
                np.rint(part @ w[row, column].astype(np.float64))
                .astype(np.int64)
                .reshape(total.shape)
            )
    scaled = np.rint((total + b).astype(np.float32) / np.float32(4096))
    return np.asarray(np.clip(scaled, 0, 127), np.int8)


def test_the_workflow_of_the_test_environment_gives_the_reference(tmp_path: Path) -> None:
    interp = NemInterpreter(device="npm_lite", ddr_size=256 * 1024 * 1024)
    program = interp.load(write_program(tmp_path, CONVOLUTION, "conv2d_relu.nem"))

    rng = np.random.default_rng(7)
    input_data = rng.integers(-128, 127, size=(1, 64, 64, 64), dtype=np.int8)
    weights = rng.integers(-128, 127, size=(3, 3, 64, 64), dtype=np.int8)
    bias = rng.integers(-100_000, 100_000, size=64, dtype=np.int32)

    # The printed offsets leave 16 KiB for weights of 36 KiB; these match the declarations.
    interp.ddr_write_tensor(offset=0, tensor=input_data)
    interp.ddr_write_tensor(offset=262144, tensor=weights)
    interp.ddr_write_tensor(offset=299008, tensor=bias)

    result = interp.run(program)
    assert result.status == "completed"
    assert result.diagnostics == ()

    output = interp.ddr_read_tensor(offset=299264, shape=(1, 64, 64, 64), dtype=np.int8)
    reference = compute_reference_conv2d_relu(input_data, weights, bias)
    np.testing.assert_array_equal(output, reference)
    assert len(np.unique(reference)) > 20


# 4.6 Non-Deterministic Scheduling


def test_the_order_is_chosen_as_printed() -> None:
    interp, inputs = filled()
    program = interp.load_string(PIPELINE)
    orders = []
    interp.set_scheduling("deterministic")
    for seed in (None, 42, 42, 43):
        if seed is not None:
            interp.set_scheduling("random", seed=seed)
        session = interp.start(program, inputs=inputs)
        session.run()
        orders.append(session.order)
        found = interp.ddr_read_tensor(offset=4608, shape=(8, 16, 16), dtype=np.float16)
        np.testing.assert_array_equal(found, expected(*tiles()))
    plain, first, again, other = orders
    assert first == again
    assert len({tuple(order) for order in (plain, first, other)}) == 3
    interp.set_scheduling("deterministic")
    session = interp.start(program, inputs=inputs)
    session.run()
    assert session.order == plain


# 3.4 Device info, 6.2 Device Resolution


PRINTED_FIELDS = (
    "name", "spec_version", "baseline", "num_engines", "per_engine",
    "mandatory_variants", "extended_variants", "effective_set",
)  # fmt: skip


def test_a_resolved_device_has_the_fields_that_are_printed(tmp_path: Path) -> None:
    dev = NemInterpreter(device="npm_pro").get_device_info()
    assert isinstance(dev, DeviceConfig)
    assert set(PRINTED_FIELDS) <= {field.name for field in dataclasses.fields(dev)}
    assert (dev.spec_version, dev.baseline) == ("NEM-1.0", "nem_baseline_1_0")
    assert "gemm.float<f16>.no_bias" in dev.mandatory_variants
    assert len(dev.extended_variants) == 1
    assert not dev.mandatory_variants & dev.extended_variants
    united = set().union(*dev.effective_set.values())
    assert united <= dev.mandatory_variants | dev.extended_variants
    assert {k: set(v) for k, v in dev.effective_types.items()} == dev.effective_set

    (tmp_path / "device.cfg").write_text(DEVICE, encoding="utf-8")
    own = NemInterpreter(device=tmp_path / "device.cfg").get_device_info()
    lite = NemInterpreter(device="npm_lite").get_device_info()
    assert (own.name, own.baseline, own.effective_set) == (
        "my_board",
        lite.baseline,
        lite.effective_set,
    )
    bare = NemInterpreter().get_device_info()
    assert (bare.baseline, bare.extended_variants) == ("nem_baseline_1_0", set())


def test_the_sizes_of_an_interpreter_are_those_of_its_device_info() -> None:
    interp = NemInterpreter(l1_size=2560, l2_size=8192, ddr_size=65536)
    program = interp.load_string(PIPELINE)
    for dev in (interp.get_device_info(), interp.get_device_info(program)):
        assert (dev.l1_size_bytes, dev.l2_size_bytes, dev.ddr_size_bytes) == (2560, 8192, 65536)
    with interp.start(program, inputs=filled()[1]) as session:
        assert len(session.read_memory("L1", engine=0)) == 2560
    dev = NemInterpreter(l2_size=8192).get_device_info()
    assert (dev.l1_size_bytes, dev.l2_size_bytes) == (1 << 20, 8192)
    # A device has sizes of its own, and what is told is what holds.
    named = NemInterpreter(device="npm_lite", l1_size=2560).get_device_info()
    assert named == NemInterpreter(device="npm_lite").get_device_info()


# 3.3 in timed mode


def test_a_timed_step_waits_until_its_token_is_satisfied() -> None:
    interp, inputs = filled()
    interp.set_mode("timed")
    session = interp.start(interp.load_string(PIPELINE), inputs=inputs)
    first = session.step()
    assert (first.task_id, first.status) == ("tL", "waiting")
    assert not session.get_tokens()["tL"]["satisfied"]
    seen = {}
    while (result := session.step()).status != "finished":
        seen[result.task_id] = result.status
        waits = result.task_id in session.get_state().active_tasks
        assert result.status == ("waiting" if waits else "completed")
    assert seen["wait@17"] == "completed"
    assert list(seen.values())[-1] == "completed"  # then nothing is left to wait for
    assert set(seen.values()) == {"waiting", "completed"}
    assert session.status == "finished"

    session = interp.start(interp.load_string(PIPELINE), inputs=inputs)
    assert len(session.step(n=STEPS)) == STEPS  # a step that waits stops nothing
    assert session.status == "finished"


def timed_session() -> Session:
    interp, inputs = filled()
    interp.set_mode("timed")
    return interp.start(interp.load_string(PIPELINE), inputs=inputs)


def test_a_timed_session_runs_until_a_token_is_satisfied() -> None:
    session = timed_session()
    for token in ("tV", "tC", "tC[1]", "tX", "tS[7]"):
        result = session.run_until(token=token)
        assert (result.status, result.reason) == ("paused", f"`{token}` is satisfied")
        assert session.get_tokens()[token]["satisfied"]
        assert token in session.get_state().satisfied_tokens
    assert session.run_until(token="tC[1]").reason == "`tC[1]` is satisfied already"

    session = timed_session()
    session.step(n=7)
    assert "tC[0]" in session.get_state().active_tasks
    session.run_until(token="tC")  # which has started: that instance is the next one
    assert session.get_tokens()["tC[0]"]["satisfied"]
    assert not session.get_tokens()["tC[1]"]["satisfied"]


def test_nothing_is_ready_in_a_timed_session_before_what_it_waits_for_is_complete() -> None:
    session = timed_session()
    waits = {"tC": "tX", "tR": "tC", "tS": "tR"}
    while session.step().status != "finished":
        state, ready = session.get_state(), session.get_ready_tasks()
        assert not set(ready) & set(state.active_tasks)
        assert not set(ready) & set(session.get_pending_tasks())
        for name in ready:
            if (needed := waits.get(name[:2])) is not None:
                assert needed + name[2:] in state.satisfied_tokens
        assert len(state.active_loops.get("i", ())) <= 2  # the window counts complete iterations
    units = session.get_state().engine_states[0]
    assert (units["time"], set(units["units"].values())) == (session.run().cycle_count, {None})


def test_an_iteration_of_a_timed_session_is_complete_when_its_last_task_is() -> None:
    session = timed_session()
    assert session.step_iteration().reason == "iteration i=0 is complete"
    assert session.get_tokens()["tS[0]"]["satisfied"]


def test_a_timed_run_has_one_order() -> None:
    interp, inputs = filled()
    program = interp.load_string(PIPELINE)
    interp.set_mode("timed")
    with pytest.raises(InputError, match="`random` and mode `timed`"):
        interp.set_scheduling("random", seed=3)
    order = interp.start(program, inputs=inputs).order
    for call in (interp.run, interp.start):
        with pytest.raises(InputError, match="an order and mode `timed`"):
            call(program, inputs, order=order)
    assert (interp.run(program, inputs).cycle_count or 0) > 0  # neither refusal left a trace

    interp.set_mode("functional")
    interp.set_scheduling("random", seed=3)
    with pytest.raises(InputError, match="`random` and mode `timed`"):
        interp.set_mode("timed")
    assert interp.run(program, inputs).cycle_count is None
    interp.set_scheduling("deterministic")
    interp.set_mode("timed")
