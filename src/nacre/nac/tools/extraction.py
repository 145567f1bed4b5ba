"""What a file carries, as files of their own.

| file | what it is |
|---|---|
| `weights.safetensors` | the weights by name, as they are stored or as the program sees them |
| `resources/NAME` | the embedded files |
| `tokenizer.tisa`, `tokenizer.txt` | the manifest of the tokenizer, and its text |
| `plan.orch`, `plan.txt` | the section with the execution plan, and its text |
| `TRNG.bin`, `ARRS.bin` | sections that are kept as bytes |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from nacre.base.diagnostics import InputError
from nacre.nac.checks.tables import is_plain_name
from nacre.nac.format.external import external_parts
from nacre.nac.format.positions import Position, finding
from nacre.nac.format.sections import orch
from nacre.nac.format.values import Bytes
from nacre.nac.rules.container import NAC16
from nacre.nac.rules.running import NAC43
from nacre.nac.run.weights import Weights
from nacre.nac.tools.dequantised import dequantised_tensor
from nacre.nac.tools.opening import OpenedFile

Parts = list[Bytes]  # of one file
Entries = Iterator[tuple[str, Parts]]  # a path below the folder, and what goes there
WEIGHTS = "weights.safetensors"
_MOST_TIMES = 8  # as large as they are stored
_ANYWAY = 64 * 2**20


def weights(opened: OpenedFile, *, as_stored: bool = True) -> Entries:
    """All weights in one file; those that are not as stored are as the program computes with."""
    tensors = opened.tensors
    if not tensors:
        return
    names = {n: id_ for n, id_ in opened.parameter_names.ids.items() if id_ in tensors}
    _require_room(opened, names)
    if not as_stored:
        seen = Weights(opened.file, opened.external)
        tensors = {id_: dequantised_tensor(id_, seen) for id_ in dict.fromkeys(names.values())}
    yield WEIGHTS, list(external_parts([(name, tensors[id_]) for name, id_ in names.items()]))


def _require_room(opened: OpenedFile, names: Mapping[str, int]) -> None:
    """A weight is written under each of its names; a file cannot ask for a disk full by that."""
    sizes = {id_: len(opened.tensors[id_].data) for id_ in names.values()}
    total, most = sum(sizes[id_] for id_ in names.values()), _MOST_TIMES * sum(sizes.values())
    if total > max(most, _ANYWAY):
        message = f"weights under all of their names take {total:,} bytes, at most {most:,}"
        raise InputError([finding(NAC43, opened.source, Position(0, "RSRC"), message)])


def resources(opened: OpenedFile) -> Entries:
    """The embedded files; InputError for a name that could lead out of the folder."""
    offsets = opened.file.record_offsets.get("RSRC", ())
    wrong = []
    for index, resource in enumerate(opened.file.resources):
        if not is_plain_name(resource.name):
            place = Position(offsets[index] if offsets else 0, "RSRC")
            message = f"a resource is called {resource.name[:40]!r}, expected a plain name"
            wrong.append(finding(NAC16, opened.source, place, message))
    if wrong:
        raise InputError(wrong)
    yield from ((f"resources/{r.name}", [r.data]) for r in opened.file.resources)


def tokenizer(opened: OpenedFile) -> Entries:
    """The manifest of the tokenizer, and its text where it is sound."""
    manifest = bytes(opened.file.sections.get("PROC", b""))
    if not manifest:
        return
    yield "tokenizer.tisa", [manifest]
    from nacre.nac.tisa.listing import disassemble

    yield from _text_entry("tokenizer.txt", lambda: disassemble(manifest))


def plan(opened: OpenedFile) -> Entries:
    """The section of the plan, and its text where it is sound."""
    section = opened.file.plan
    if not section.bytecode and not section.constants:
        return
    yield "plan.orch", [b"ORCH", orch.write(section)]
    from nacre.nac.mep.disassembler import disassemble

    yield from _text_entry("plan.txt", lambda: disassemble(section))


def _text_entry(name: str, make_text: Callable[[], str]) -> Entries:
    try:
        yield name, [make_text().encode()]
    except InputError:  # the bytes are there all the same
        return


def opaque_sections(opened: OpenedFile) -> Entries:
    """Sections of which nothing is known but their bytes."""
    for tag in ("TRNG", "ARRS"):
        content = opened.file.sections.get(tag)
        if content:
            yield f"{tag}.bin", [content]


PARTS: Mapping[str, Callable[[OpenedFile], Entries]] = MappingProxyType(
    {
        "weights": weights,
        "resources": resources,
        "tokenizer": tokenizer,
        "plan": plan,
        "kept": opaque_sections,
    }
)
