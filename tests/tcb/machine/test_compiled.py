"""The event loop compiled gives the same columns as in plain Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nacre.base.diagnostics import InputError
from nacre.base.loops.machine_code import is_available
from nacre.binding import bind
from nacre.tcb.image import Image
from nacre.tcb.machine.event_columns import Columns
from nacre.tcb.machine.timing import time_image
from tests.effort import scaled
from tests.nem.run.timing.sketches import Sketch, program_text, sketches
from tests.tcb.machine.bound import EXAMPLES, bound, example, loaded
from tests.tcb.machine.figures import figures

pytestmark = [
    pytest.mark.full,  # compiling takes its time
    pytest.mark.skipif(not is_available(), reason="numba is not installed"),
]


@settings(max_examples=scaled(100), deadline=None)
@given(sketches(), st.none() | figures())
def test_random_programs_take_the_same_time_compiled(
    sketch: Sketch, given: dict[str, int | str] | None
) -> None:
    try:
        image = bound(loaded(program_text(*sketch), None))
    except InputError:  # NEM's machine runs out of tokens
        reject()
    machine = replace(image.machine, figures=tuple((given or {}).items()))
    require_same_columns(replace(image, machine=machine))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_take_the_same_time_compiled(path: Path) -> None:
    for uarch in ("ideal", None):
        require_same_columns(bind(example(path), uarch).image)


def require_same_columns(image: Image) -> None:
    plain, fast = (time_image(image, compile=compile).columns for compile in (False, True))
    for name in Columns._fields:
        np.testing.assert_array_equal(getattr(fast, name), getattr(plain, name), name)
