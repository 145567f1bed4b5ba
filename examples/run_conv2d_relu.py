"""Drive a program from Python: run it, compare with NumPy, walk through it, time it.

    python examples/run_conv2d_relu.py

The program is conv2d_relu.nem beside this file. docs/running.md and docs/timing.md say more about
every call that is used here.
"""

# ruff: noqa: T201 - it shows what it finds

from pathlib import Path

import numpy as np

from neminterp import NemInterpreter

PROGRAM = Path(__file__).with_name("conv2d_relu.nem")

# Inputs by a fixed rule, so that every run of this script prints the same. A buffer takes an array
# of any type and shape, as long as it has as many bytes as the buffer.
x = (np.arange(4 * 16 * 16 * 64) % 251 - 125).astype(np.int8).reshape(4, 16, 16, 64)
w = (np.arange(3 * 3 * 64 * 128) % 31 - 15).astype(np.int8).reshape(3, 3, 64, 128)
bias = (np.arange(128) * 256 - 16384).astype(np.int32)
inputs = {"X_L2": x, "W_L2": w, "B_L2": bias}

# 1. Load and check. A program with errors is refused by `run` and `start`, with its diagnostics.
interp = NemInterpreter()
program = interp.load(PROGRAM)
print("findings:", interp.validate(program))

# 2. Run it to the end and read the output, as bytes or through a region with its type and shape.
result = interp.run(program, inputs)
y = np.frombuffer(result.read_buffer("Y_L2"), np.int8).reshape(4, 14, 14, 128)
last_tile = result.read_region("Y_tile_3")  # the let `Y_tile_i` at i = 3
print(f"ran {result.tasks} tasks: {result.status}; last tile {last_tile.dtype}", end=" ")
print(f"{last_tile.shape}, the same bytes: {np.array_equal(last_tile, y[3:])}")

# 3. The same by hand. Integers must agree to the bit (docs/numerics.md has the formulas):
#    sums of (x - 3) * w and the bias, rescaled in f32, rounded, zero point -10 added, cut at -10.
sums = np.zeros(y.shape, np.int64)
for row in range(3):
    for column in range(3):
        part = x[:, row : row + 14, column : column + 14].astype(np.int64) - 3
        sums += part @ w[row, column].astype(np.int64)
scale = np.float32(0.02) * np.float32(0.005) / np.float32(0.25)
rescaled = np.rint((sums + bias).astype(np.float32) * scale) - 10
expected = np.clip(rescaled, -10, 127).astype(np.int8)
print("as NumPy says:", np.array_equal(y, expected), "- checksum", int(y.astype(np.int64).sum()))

# 4. Any legal order gives the same bytes: nothing in the program races.
for seed in range(5):
    interp.set_scheduling("random", seed=seed)
    assert interp.run(program, inputs).read_buffer("Y_L2") == y.tobytes()
interp.set_scheduling("deterministic")
print("five random schedules: the same bytes")

# 5. Step through it. A session runs forwards and backwards; the memories L2 and L1 are its own.
with interp.start(program, inputs) as session:
    print("steps:", *(step.task_id for step in session.step(3)))

    # Pause before the second tile's ReLU, and look at what it is about to cut.
    session.add_breakpoint(task="tR", condition="i == 1")
    print("paused:", session.continue_().reason)
    before = session.read_region("Y_pp_i")
    print("below the zero point:", int((before < -10).sum()), "of", before.size)

    # Who wrote the two slots of Y_L1? The first is behind its ReLU, the second before it.
    for written in session.who_wrote("Y_L1"):
        print(f"bytes {written.low}..{written.high - 1}: {written.writer}, line {written.line}")

    # Back to before the convolution: its output is gone, byte for byte.
    print("took back:", session.step_back(), "- next is", session.next_step)
    print("after that:", [written.writer for written in session.who_wrote("Y_L1")])
    print("ready now:", session.get_ready_tasks())

# 6. Time it. The values are the same; the units of the device decide when each task starts.
interp.set_mode("timed")
timed = interp.run(program, inputs)
assert timed.timing is not None
assert timed.read_buffer("Y_L2") == y.tobytes()
print("cycles:", timed.cycle_count)
print(timed.timing.sentence())

# 7. What if the NMU were twice as fast? `time` computes no values.
faster = interp.time(program, changes={"NMU.int8_macs": 8192})
print("with twice the MACs:", faster.cycles)
