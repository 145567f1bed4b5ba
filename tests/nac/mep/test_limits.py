"""Limits of a plan's machine that callers name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.nac.mep import Machine, assemble


@pytest.mark.parametrize(
    ("limits", "codes"),
    [
        ({"max_steps": 0}, ["NAC88"]),
        ({"max_steps": -1}, ["NAC88"]),
        ({"max_steps": 10.0}, ["NAC88"]),
        ({"max_steps": True}, ["NAC88"]),
        ({"max_steps": None}, ["NAC88"]),
        ({"max_bytes": "1 GB"}, ["NAC89"]),
        ({"max_bytes": math.inf}, ["NAC89"]),
        ({"max_steps": 0, "max_bytes": -5}, ["NAC88", "NAC89"]),
    ],
)
def test_limits_that_make_no_sense_are_refused_before_a_plan_runs(
    limits: dict[str, Any], codes: list[str]
) -> None:
    with pytest.raises(InputError, match="expected an integer from 1 on") as caught:
        Machine(assemble("src_constant %x, 1\nreturn [%x]"), **limits)
    assert [one.code for one in caught.value.diagnostics] == codes


def test_limits_may_be_integers_of_numpy() -> None:
    plan = assemble("src_constant %x, 1\nreturn [%x]")
    limits: dict[str, Any] = {"max_steps": np.int64(9), "max_bytes": np.uint8(99)}
    assert Machine(plan, **limits).run() == [1]
