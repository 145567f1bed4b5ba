"""What a file holds, in figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from nacre.base.diagnostics import InputError
from nacre.nac.format.scales import is_scaled
from nacre.nac.format.values import NacFile
from nacre.nac.mep.answers import Prompt, prompts_of
from nacre.nac.mep.program import program_of
from nacre.nac.operations.registry import is_known
from nacre.nac.program.interface import ProgramInterface, program_interface
from nacre.nac.spec.elements import DTYPES, QUANTIZATIONS
from nacre.nac.spec.header import SECTIONS
from nacre.nac.tools.listing import action_name
from nacre.nac.tools.opening import OpenedFile, stored_type, true_shape


@dataclass(frozen=True)
class Section:
    """A section: where it lies, how long it is, and how much is in it."""

    tag: str
    offset: int
    bytes: int  # with its tag
    records: int
    title: str


@dataclass(frozen=True)
class Input:
    """An input; what the file does not say of its type is None."""

    name: str
    dtype: str | None
    shape: tuple[int, ...] | None
    instruction: int
    is_optional: bool


@dataclass(frozen=True)
class Parameter:
    """A weight as it is stored; one that cannot be had has no type."""

    id: int
    name: str
    stored: str | None
    shape: tuple[int, ...] | None
    quant: str | None
    bytes: int  # with its scales
    training: str | None = None  # `trained`, `fixed` or `both`, as parameters share it


@dataclass(frozen=True)
class Overview:
    """A file in figures."""

    name: str
    bytes: int
    version: str
    quant: str
    weights: str  # internal or external
    has_training: bool
    d_model: int
    declared_inputs: int
    declared_outputs: int
    output_names: tuple[str, ...]
    instructions: int
    operations: dict[str, int]  # calls by name
    unknown: tuple[str, ...]  # operations for which there is no kernel
    commands: dict[str, int]  # of the memory schedule by name
    sections: tuple[Section, ...]
    inputs: tuple[Input, ...]
    parameters: tuple[Parameter, ...]
    resources: dict[str, int]  # bytes by name
    prompts: tuple[Prompt, ...] = ()  # of the plan

    @property
    def weight_bytes(self) -> int:
        """What all weights take."""
        return sum(parameter.bytes for parameter in self.parameters)


def overview(opened: OpenedFile) -> Overview:
    """A file in figures."""
    file = opened.file
    header = file.header
    around, _ = program_interface(file, opened.source)
    commands = Counter(action_name(c.action) for tick in file.schedule for c in tick.commands)
    quant = QUANTIZATIONS.get(header.quant)
    return Overview(
        name=opened.name,
        bytes=opened.size,
        version=header.rules.name,
        quant=quant.name if quant is not None else str(header.quant),
        weights="internal" if header.is_internal else "external",
        has_training=header.has_training,
        d_model=header.d_model,
        declared_inputs=header.inputs,
        declared_outputs=header.outputs,
        output_names=around.output_names,
        instructions=len(file.instructions),
        operations=calls_by_operation(file),
        unknown=tuple(name for name in calls_by_operation(file) if not is_known(name)),
        commands=dict(sorted(commands.items())),
        sections=_sections(opened),
        inputs=tuple(
            Input(i.name, i.dtype, i.shape, i.instruction, i.is_optional) for i in around.inputs
        ),
        parameters=_parameters(opened, around),
        resources={resource.name: len(resource.data) for resource in file.resources},
        prompts=_prompts(opened),
    )


def calls_by_operation(file: NacFile) -> dict[str, int]:
    """How often each operation is called, by its name; the most frequent first."""
    calls = Counter(
        file.name_of.get(i.op, f"op_{i.op}") for i in file.instructions if not i.is_system
    )
    return dict(sorted(calls.items(), key=lambda item: (-item[1], item[0])))


def _prompts(opened: OpenedFile) -> tuple[Prompt, ...]:
    """What the plan asks for; verify says what is wrong with one that cannot be read."""
    if not opened.file.plan.bytecode:
        return ()
    try:
        return prompts_of(program_of(opened.file.plan))
    except InputError:
        return ()


def _sections(opened: OpenedFile) -> tuple[Section, ...]:
    tags = list(opened.offsets)
    ends = [*list(opened.offsets.values())[1:], opened.size]
    sections = []
    for tag, end, following in zip(tags, ends, [*tags[1:], ""], strict=True):
        start = opened.offsets[tag]
        length = end - start - len(opened.file.gaps.get(following, b""))
        title, records = SECTIONS[tag].title, _records(opened, tag)
        sections.append(Section(tag.strip(), start, length, records, title))
    return tuple(sections)


def _records(opened: OpenedFile, tag: str) -> int:
    """How many records a section has; one that is kept as bytes counts these."""
    content = opened.file.sections[tag]
    if tag == "DATA":
        return len(content.parameters)
    if tag == "ORCH":
        return len(content.bytecode)
    return len(content)


def _parameters(opened: OpenedFile, around: ProgramInterface) -> tuple[Parameter, ...]:
    parameters = []
    roles = _roles(around)
    for id_, name in opened.parameters.items():
        tensor = opened.tensors.get(id_)
        if tensor is None:
            parameters.append(Parameter(id_, name, None, None, None, 0))
            continue
        size = len(tensor.data) + len(tensor.scales)
        quant = QUANTIZATIONS[tensor.quant].name
        shape, role = true_shape(tensor), roles.get(id_)
        is_float = DTYPES[tensor.dtype].startswith(("f", "bf")) or is_scaled(tensor.quant)
        stored = stored_type(tensor)
        parameters.append(
            Parameter(id_, name, stored, shape, quant, size, role if is_float else None)
        )
    return tuple(parameters)


def _roles(around: ProgramInterface) -> dict[int, str]:
    """What training does with each tensor, by id; nothing where the file does not say."""
    names = around.parameters
    found: dict[int, set[str]] = {}
    for instruction, id_ in names.loaded.items() if around.fixed is not None else ():
        assert around.fixed is not None
        is_fixed = names.of_load(instruction) in around.fixed
        found.setdefault(id_, set()).add("fixed" if is_fixed else "trained")
    return {id_: roles.pop() if len(roles) == 1 else "both" for id_, roles in found.items()}
