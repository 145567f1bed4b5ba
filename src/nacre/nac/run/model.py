"""A file that can be run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from nacre.base.diagnostics import InputError, has_errors, in_order
from nacre.base.source import Source
from nacre.core.values import Array
from nacre.nac.checks.file import check_file
from nacre.nac.format.external import External
from nacre.nac.format.file import FileSource
from nacre.nac.format.positions import BinarySource
from nacre.nac.format.values import NacFile
from nacre.nac.program.interface import program_interface
from nacre.nac.rules.limits import require_limits
from nacre.nac.rules.seeds import require_seed
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.optimised import OptimisedPrograms
from nacre.nac.run.program import prepare
from nacre.nac.run.session import NacSession
from nacre.nac.run.weights import Weights


@dataclass(frozen=True, eq=False)
class NacModel(LoadedProgram):
    """A program with its weights, verified and ready to run."""

    optimised: OptimisedPrograms = field(default_factory=OptimisedPrograms, repr=False)
    # Sessions that nobody is using. A run takes one out of here, so that several may go on at once.
    _idle: list[NacSession] = field(default_factory=list, repr=False)

    def __repr__(self) -> str:
        given = ", ".join(made.name for made in self.inputs)
        return f"<NacModel {self.source.name}: {len(self.program)} instructions, inputs {given}>"

    def run(self, inputs: Mapping[str, Any] | None = None, *, seed: int = 0) -> list[Array]:
        """The outputs in order; state starts from its initial value. InputError says why not.

        The program is run as in a `session()`, which says what that means for the last bits.
        Random numbers follow from the seed: the same each time.
        """
        try:
            session = self._idle.pop()
        except IndexError:
            session = self.session()
        session.reset()
        session.seed = require_seed(seed)
        try:
            return session.run(inputs)
        finally:
            self._idle.append(session)

    def session(
        self,
        *,
        max_bytes: int | None = None,
        max_work: int | None = None,
        timed: bool = False,
        optimise: bool = True,
        seed: int = 0,
    ) -> NacSession:
        """A session that keeps state between runs.

        It may hold at most so many bytes at a time and take so many steps a run. Where nobody says
        how many, this follows from the sizes of the file and of the inputs. The program is
        rewritten for inference, once for a model and the types of its inputs, which changes the
        last bits of floats. `optimise=False` runs it as it is written, instruction by instruction,
        with the bits that `lift` has; what is timed is run so in any case. Random numbers follow
        from the seed, and from run to run go on.
        """
        programs = self.optimised if optimise and not timed else None
        return NacSession(
            self, programs, max_bytes=max_bytes, max_work=max_work, timed=timed, seed=seed
        )


def load(
    path: FileSource,
    *,
    max_bytes: int | None = None,
    max_work: int | None = None,
    keep_bytes: int | None = None,
    memory_limit: int | None = None,
    name: str | None = None,
) -> NacModel:
    """A file ready to run; InputError has all that is wrong with it.

    Operations that nacre does not know stay in it by their names: `register_operation` gives them
    kernels, without which a run is refused.

    Weights are mapped: none is copied before it is used. What a run may take at most follows from
    the sizes of the file and of the inputs, unless it is said here; so does `keep_bytes`, how much
    a model keeps between runs of weights that do not lie in the file as kernels take them.

    With a `memory_limit` in bytes, weights and results of a run together take no more: weights come
    when they are needed, several calls ahead where there is room, and their pages go back to the
    system. A run raises InputError where that cannot be, with the least limit that can be met.

    Findings stand at the path; of bytes at their `name`, if they have one.
    """
    limits = require_limits(
        max_bytes=max_bytes, max_work=max_work, keep_bytes=keep_bytes, memory_limit=memory_limit
    )
    kept = limits.pop("keep_bytes")
    examined, external, findings = check_file(path, name=name)
    if examined.file is None or has_errors(findings):
        raise InputError(in_order(d for d in findings if d.severity == "error"))
    model = model_of(examined.file, examined.source, external, kept)
    return replace(model, **cast("Any", limits))


def model_of(
    file: NacFile,
    source: Source | None = None,
    external: External | None = None,
    keep_bytes: int | None = None,
) -> NacModel:
    """A model of a file that is sound; InputError where the runtime cannot run it."""
    place = source or BinarySource("<nac>", 0)
    program, findings = prepare(file, place)
    around, wrong = program_interface(file, place, external)
    if findings or wrong:
        raise InputError(in_order([*findings, *wrong]))
    return NacModel(file, place, program, around, Weights(file, external, keep_bytes), external)
