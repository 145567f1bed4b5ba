"""Plans that `nac.build` is given, in each form that people have them in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nac.mep import assemble, shipped_plan
from nacre.nac.mep.program import read

TEXT = "src_constant %a, 3\nreturn [%a]\n"


def module() -> Module:
    made = Builder()
    return made.module(made.add("Neg", made.input("x", "f32", (2,))))


def test_every_form_of_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "three.mep"
    path.write_text(TEXT)
    assembled = assemble(TEXT)
    for plan in (assembled, bytearray(assembled), path, str(path), read(assembled)):
        model = nac.build(module(), plan=plan)
        assert model.file.plan == read(assembled)
        nac.save(model, tmp_path / "m.nac")
        assert nac.load(tmp_path / "m.nac").file.plan == read(assembled)
    assert nac.build(module(), plan="greedy").file.plan == read(shipped_plan("greedy"))


@pytest.mark.parametrize("plan", ["missing.mep", b"", b"ORCH", 3, ["greedy"]])
def test_what_is_no_plan(plan: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError):
        nac.build(module(), plan=plan)
