"""The machine for the plan that a file carries: its own model, its own tokenizer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.nac.mep.machine import MAX_BYTES, MAX_STEPS, Machine
from nacre.nac.mep.program import Program, program_of
from nacre.nac.mep.work import Mode
from nacre.nac.tisa.decoders import RESOURCE as DECODER
from nacre.nac.tisa.options import RESOURCE as OPTIONS
from nacre.nac.tisa.resources import FILES

if TYPE_CHECKING:
    from nacre.nac.run.model import NacModel
    from nacre.nac.tisa.program import TisaProgram

OWN_NAME = "model"  # by which plans that come with the package load it


def machine_of(
    model: NacModel,
    *,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    max_steps: int = MAX_STEPS,
    max_bytes: int = MAX_BYTES,
    may_write: bool = False,
    mode: Mode = "infer",
) -> Machine:
    """A machine that runs the plan of a file; InputError where the plan or a part is wrong.

    In its plan the file has the names `model`, its file name, and that without a suffix. Other
    models come from the folder `root`.
    """
    file = model.file
    program = program_of(file.plan, model.source, file.record_offsets.get("ORCH", (0,))[0])
    own = Path(model.source.name)
    return Machine(
        program,
        models=dict.fromkeys((OWN_NAME, own.name, own.stem), model),
        tokenizer=_tokenizer(model) if _has_tokenizer(program) else None,
        root=root,
        seed=seed,
        max_steps=max_steps,
        max_bytes=max_bytes,
        may_write=may_write,
        mode=mode,
        resources={resource.name: resource.data for resource in file.resources},
    )


def _has_tokenizer(program: Program) -> bool:
    return any(step.row.mnemonic == "res_load_extern" for step in program.steps)


def _tokenizer(model: NacModel) -> TisaProgram | None:
    """The tokenizer of a file, None where it has none."""
    manifest = model.file.sections.get("PROC", b"")
    if not manifest:
        return None
    from nacre.nac.tisa.program import load

    resources = {name: model.file.resource(name) for name in (*FILES, DECODER, OPTIONS)}
    return load(
        manifest, {name: bytes(data) for name, data in resources.items() if data is not None}
    )
