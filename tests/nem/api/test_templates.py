"""Programs that templates start: without findings on every device, and what NumPy computes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nacre import nem
from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.nem.api import NemInterpreter
from nacre.nem.api.templates.names import TEMPLATE_NAMES
from nacre.nem.api.templates.new_program import TEMPLATES, new_program
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.model.builtins import BASELINE_DEVICE, builtin_names
from nacre.nem.model.target import UnknownDeviceError, builtin_device

pytestmark = pytest.mark.sampled(2)  # together they take long

Array = npt.NDArray[Any]
DEVICES = [name for name in builtin_names() if name != BASELINE_DEVICE]
ALL = [(template, device) for device in DEVICES for template in TEMPLATE_NAMES]
RANDOM = np.random.default_rng(26)
SMALL = """
include "nem_baseline_1.0.nem"

device small extends nem_baseline_1_0 {{
    topology {{
        num_engines = 1
        l2_size_bytes = {l2}
        device_units {{
            sDMA = 1
            WDM = 0
        }}
        per_engine {{
            NMU = 1
            CSTL = 1
            DMA = 1
            VPU = 1
            SEQ = 1
            l1_size_bytes = {l1}
        }}
    }}
}}
"""


def sizes(text: str) -> dict[str, int]:
    """The constants of a program that are written as numbers."""
    return {name: int(value) for name, value in re.findall(r"^const (\w+) = (\d+)\b", text, re.M)}


def integers(low: int, high: int, *shape: int) -> Array:
    return RANDOM.integers(low, high, shape)


def run(text: str, **inputs: Array) -> Any:  # noqa: ANN401 - what the interpreter returns
    interpreter = NemInterpreter()
    result = interpreter.run(interpreter.load_string(text), dict(inputs))
    assert result.status == "completed"
    assert [str(found) for found in result.diagnostics] == []
    return result


# Each computes what its template says, with values that f16 holds exactly or nearly so.


def gemm(text: str) -> None:
    c = sizes(text)
    rows, depth, columns = c["T"] * c["TiM"], c["K"], c["N"]
    a, b = integers(-2, 3, rows, depth), integers(-2, 3, depth, columns)
    bias = integers(-9, 10, columns)
    f16 = {"A_DDR": a, "B_DDR": b, "C_DDR": bias}
    result = run(text, **{name: array.astype(np.float16) for name, array in f16.items()})
    found = np.frombuffer(result.read_buffer("Y_DDR"), np.float16).reshape(rows, columns)
    sums = a.astype(np.float32) @ b.astype(np.float32) + bias
    np.testing.assert_array_equal(found, np.maximum(sums, 0).astype(np.float16))


def conv2d(text: str) -> None:
    c = sizes(text)
    high, wide = c["T"] * c["ToH"], c["W"]
    x = integers(-20, 21, high + 2, wide, c["Cin"])
    w = integers(-3, 4, 3, 3, c["Cin"], c["Cout"])
    bias = integers(-500, 501, c["Cout"])
    result = run(
        text,
        X_DDR=x.astype(np.int8),
        W_DDR=w.astype(np.int8),
        B_DDR=bias.astype(np.int32),
    )
    padded = np.pad(x - 3, ((0, 0), (1, 1), (0, 0))).astype(np.float64)
    sums = np.zeros((high, wide, c["Cout"])) + bias
    for row in range(3):
        for column in range(3):
            window = padded[row : row + high, column : column + wide]
            sums += window @ w[row, column].astype(np.float64)
    f32 = np.float32
    scaled = sums.astype(f32) * (f32(0.02) * f32(0.005) / f32(0.125))
    stored = np.clip(np.rint(scaled) - 10, -128, 127)
    found = np.frombuffer(result.read_buffer("Y_DDR"), np.int8).reshape(sums.shape)
    assert 0.1 < (stored > -10).mean() < 0.9
    np.testing.assert_array_equal(found, np.maximum(stored, -10).astype(np.int8))


def attention(text: str) -> None:
    c = sizes(text)
    queries, keys, width = c["T"] * c["TiM"], c["L"], c["D"]
    q = (integers(-4, 5, queries, width) / 16).astype(np.float16)
    k, v = (integers(-8, 9, keys, width).astype(np.float16) for _ in range(2))
    result = run(text, Q_DDR=q, K_DDR=k, V_DDR=v)
    scores = (q.astype(np.float64) @ k.astype(np.float64).T).astype(np.float16).astype(np.float64)
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares = raised / raised.sum(axis=1, keepdims=True)
    found = np.frombuffer(result.read_buffer("O_DDR"), np.float16).reshape(queries, width)
    expected = shares @ v.astype(np.float64)
    # Each share is rounded to f16, which is what a mean over values of up to 8 can be off by.
    np.testing.assert_allclose(found, expected, atol=8 * 2.0**-11, rtol=2.0**-10)


COMPARED = {"gemm": gemm, "conv2d": conv2d, "attention": attention}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("template", "device"), ALL)
def test_a_template_has_no_finding_even_in_strict_mode(template: str, device: str) -> None:
    text = new_program("start", template, device)
    assert [str(found) for found in nem.check(text, strict=True)] == []
    assert nem.format(text) == text
    assert max(map(len, text.splitlines())) <= 100
    assert "\nprogram start:\n" in text


@pytest.mark.heavy("runs a layer that fills the memory of a device")
@pytest.mark.sampled(4)
@pytest.mark.parametrize(("template", "device"), ALL)
def test_a_template_computes_what_numpy_does(template: str, device: str) -> None:
    COMPARED[template](new_program("start", template, device))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("template", "device"), ALL)
def test_a_template_uses_the_memory_and_leaves_some(template: str, device: str) -> None:
    topology = builtin_device(device).topology
    assert topology is not None
    source = Source("start.nem", new_program("start", template, device))
    facts = check_source(source, CheckOptions()).facts
    assert facts is not None
    memory = topology.l1_size_bytes
    assert memory is not None
    taken = sum(buffer.size or 0 for buffer in facts.program.buffers if buffer.level == "L1")
    assert memory / 5 < taken <= memory * 7 / 8


def test_every_template_has_a_name_and_a_comparison() -> None:
    assert list(TEMPLATES) == list(TEMPLATE_NAMES) == list(COMPARED)


@pytest.mark.parametrize("template", TEMPLATE_NAMES)
def test_an_abstract_device_is_refused(template: str) -> None:
    with pytest.raises(InputError) as refused:
        new_program("start", template, BASELINE_DEVICE)
    assert [found.code for found in refused.value.diagnostics] == ["DEV11"]


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(UnknownDeviceError, match="did you mean `npm_lite`"):
        new_program("start", "gemm", "npm_lit")


@pytest.mark.parametrize("template", TEMPLATE_NAMES)
@pytest.mark.parametrize("l1", [64, 32])
def test_a_device_of_ones_own_is_named_from_where_the_program_will_stand(
    template: str, l1: int, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "programs").mkdir()
    device = tmp_path / "small.nem"
    device.write_text(SMALL.format(l1=l1 * 1024, l2=64 * 1024), encoding="utf-8")
    path = tmp_path / "programs/start.nem"
    text = new_program("start", template, str(device), path)
    assert '\ndevice "../small.nem"\n' in text
    path.write_text(text, encoding="utf-8")
    assert nem.check(path, strict=True) == []


def test_a_memory_that_is_too_small_is_refused(tmp_path: Path) -> None:
    device = tmp_path / "tiny.nem"
    device.write_text(SMALL.format(l1=64, l2=64), encoding="utf-8")
    for template in TEMPLATE_NAMES:
        with pytest.raises(InputError) as refused:
            new_program("start", template, str(device), tmp_path / "start.nem")
        codes = {found.code for found in refused.value.diagnostics}
        assert codes & {"BUF06", "BUF07", "BUF08"}, template
