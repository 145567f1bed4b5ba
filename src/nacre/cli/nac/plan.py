"""`nacre nac run` of a file that carries a plan: the plan is run, in its sandbox."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote, safe
from nacre.base.files import write_whole
from nacre.cli.array_values import finite_json, read_array, values_json, values_text
from nacre.cli.arrays import WrongUsage, file_bytes, report_write_errors, write_all_or_none
from nacre.cli.nac.files import is_folder
from nacre.cli.options import WholeNumber, options_of, repeated_option

if TYPE_CHECKING:
    from nacre.nac.mep import Machine, Prompt
    from nacre.nac.mep.work import Mode
    from nacre.nac.run.model import NacModel

# What helps a user of the machine, and what helps on the command line.
_HELP: Mapping[str, str] = MappingProxyType(
    {
        "give the machine a `root`": "give it one: `--root FOLDER`",
        "give the machine `may_write=True`": "allow it: `--write`",
        "give the machine a `tokenizer`": "build the file with `--tokenizer DIR`",
    }
)
_HELP_OF_CODE: Mapping[str, str] = MappingProxyType(
    {
        "NAC88": "allow more: `--steps N`",
        "NAC96": "answers are given by `--answer PROMPT=TEXT` or `--input PROMPT=FILE.npy`",
    }
)


def _answer(text: str) -> str:
    if "=" not in text[1:]:
        raise ValueError(f"{backquote(text)} does not have the form PROMPT=TEXT")
    return text


@dataclass(frozen=True)
class PlanOptions:
    """What the command line says about the plan of a file; None where it says nothing."""

    is_wanted: bool | None
    answers: tuple[str, ...]
    seed: int | None
    steps: int | None
    root: Path | None
    may_write: bool
    mode: Mode | None

    @property
    def is_asked_for(self) -> bool:
        """Whether anything is said that only a plan has use for."""
        numbers = (self.steps, self.root, self.mode)
        return bool(self.answers or self.may_write) or any(n is not None for n in numbers)


plan_options = options_of(
    PlanOptions,
    "plan",
    click.option("--plan/--no-plan", "is_wanted", default=None,
                 help="Run the plan of FILE, or its program. Default: the plan, if there is one "
                 "and no --input."),
    repeated_option("--answer", "answers", _answer, "PROMPT=TEXT",
             "What to answer when the plan asks; may be repeated."),
    click.option("--seed", type=WholeNumber(min=0), metavar="N",
                 help="The seed of what the plan or the program leaves to chance. Default: 0."),
    click.option("--steps", type=WholeNumber(min=1), metavar="N",
                 help="The steps that the plan may take. Default: 1,000,000."),
    click.option("--root", metavar="FOLDER", type=click.Path(path_type=Path),
                 help="The folder whose files the plan may read. Default: none."),
    click.option("--write", "may_write", is_flag=True, help="Let the plan write files in --root."),
    click.option("--mode", type=click.Choice(["infer", "train", "infer_train"]),
                 help="What the plan is to do, if it asks. Default: infer."),
)  # fmt: skip


def run_plan(
    model: NacModel,
    options: PlanOptions,
    arrays: Mapping[str, str],
    outputs: Mapping[str, Path],
    output: str,
) -> None:
    """Run the plan of a file, and print what it writes and returns."""
    from nacre.nac.mep.machine import MAX_STEPS
    from nacre.nac.mep.model_machine import machine_of

    if options.root is not None and not is_folder(options.root):
        raise WrongUsage(f"{safe(str(options.root))} is no folder")
    files = {_output_number(name): path for name, path in outputs.items()}
    try:
        machine = machine_of(
            model,
            root=options.root,
            seed=options.seed or 0,
            max_steps=options.steps or MAX_STEPS,
            may_write=options.may_write,
            mode=options.mode or "infer",
        )
        values = _run_machine(machine, _answers(machine.prompts, options.answers, arrays), output)
    except InputError as error:
        raise InputError([_with_option_help(finding) for finding in error.diagnostics]) from None
    with write_all_or_none():
        for number, path in files.items():
            _write(values, number, path)
    click.echo(_as_json(machine, values) if output == "json" else _as_text(machine, values))
    if output == "text":
        for path in files.values():
            click.echo(f"wrote {safe(str(path))}")


def _run_machine(machine: Machine, answers: Mapping[str, Any], output: str) -> list[Any]:
    """What the plan returns. What it has written is shown even if it ends badly."""
    try:
        return machine.run(answers)
    finally:
        if output == "text":
            for written in machine.written:
                click.echo(_safe_text(written.text), nl=False, err=written.stream != "stdout")


def _safe_text(text: str) -> str:
    """A text of a stranger: its lines stay, what drives a terminal is made visible."""
    return "\n".join(safe(line) for line in text.split("\n"))


def _answers(
    prompts: Sequence[Prompt], texts: Sequence[str], arrays: Mapping[str, str]
) -> dict[str, Any]:
    """Answers by prompt; UsageError where there are two to one."""
    answers: dict[str, Any] = {
        name: read_array(path, option=f"--input {name}") for name, path in arrays.items()
    }
    known = sorted((prompt.text for prompt in prompts), key=len, reverse=True)
    for text in texts:
        # A prompt may hold `=` signs as well as an answer.
        name = next((one for one in known if text.startswith(f"{one}=")), text.partition("=")[0])
        if name in answers:
            raise click.UsageError(f"the answer to {backquote(name)} is given twice")
        answers[name] = text[len(name) + 1 :]
    return answers


def _with_option_help(finding: Diagnostic) -> Diagnostic:
    """The same finding with the help of the command line."""
    help_ = _HELP.get(finding.help or "") or finding.help or _HELP_OF_CODE.get(finding.code)
    return replace(finding, help=help_)


def _output_number(name: str) -> int:
    if is_digits(name) and len(name) < 10:
        return int(name)
    raise click.UsageError(f"outputs of a plan have numbers, not names such as {backquote(name)}")


def _write(values: Sequence[Any], number: int, path: Path) -> None:
    import numpy as np

    if number >= len(values):
        raise WrongUsage(f"there is no output {number}: the plan has returned {len(values)}")
    value = values[number]
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
    elif isinstance(value, np.ndarray):
        data = file_bytes(value, path)
    else:
        raise WrongUsage(f"output {number} is {_kind_text(value)}, which has no file")
    with report_write_errors(path):
        write_whole(path, [data])


def _kind_text(value: Any) -> str:  # noqa: ANN401 - a value of a plan
    import numpy as np

    from nacre.core.builder import dtype_name
    from nacre.nac.tools.opening import type_text

    if isinstance(value, np.ndarray) and value.dtype.kind == "U":
        return type_text("text", value.shape)
    if isinstance(value, np.ndarray):
        return type_text(dtype_name(value.dtype), value.shape)
    names = {str: "text", bytes: "bytes", tuple: "list", type(None): "nothing"}
    return names.get(type(value), "number" if isinstance(value, bool | int | float) else "object")


def _as_text(machine: Machine, values: Sequence[Any]) -> str:
    import numpy as np

    lines = []
    for number, value in enumerate(values):
        text = str(value)
        if isinstance(value, np.ndarray):
            text = values_text(value)
        elif isinstance(value, bytes):
            text = f"{len(value):,} bytes"
        lines += [f"output {number}: {_kind_text(value)}", _safe_text(text)]
    lines.append(f"steps: {machine.steps:,}, peak: {machine.peak_bytes:,} bytes")
    return "\n".join(lines)


def _as_json(machine: Machine, values: Sequence[Any]) -> str:
    entries = {
        "outputs": [{"type": _kind_text(value), **_value_json(value)} for value in values],
        "written": [{"stream": w.stream, "text": w.text} for w in machine.written],
        "steps": machine.steps,
        "peak_bytes": machine.peak_bytes,
    }
    return json.dumps(entries, indent=2)


def _value_json(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a value of a plan
    import numpy as np

    if isinstance(value, np.ndarray):
        shape = {"shape": list(value.shape)}
        return {**shape, **({"values": value.tolist()} if value.dtype.kind == "U" else
                            values_json(value))}  # fmt: skip
    if isinstance(value, bytes):
        return {"bytes": len(value)}
    return {"value": finite_json(list(value) if isinstance(value, tuple) else value)}
