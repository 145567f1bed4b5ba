"""Texts bound for tests of the proof."""

from __future__ import annotations

from nacre.bind.pipeline import bind_plan
from nacre.bind.request import BindOptions
from nacre.nem.api.programs import LoadedProgram
from nacre.tcb.image import Image
from neminterp import NemInterpreter

_PLAIN = BindOptions()


def bind_text(text: str, options: BindOptions = _PLAIN) -> tuple[LoadedProgram, Image]:
    """A program without errors, and its image."""
    program = NemInterpreter().load_string(text)
    program.require_runnable()
    return program, bind_plan(program.plan, "p", program.device, options).image
