"""Files of `torch.export.save`, read so that nothing of them runs.

`torch.export.load` trusts its file. It unpickles example inputs and odd constants without limits,
loads compiled libraries, evaluates the text of symbolic sizes, and imports modules that the layout
of arguments names. So the file is taken apart here first. What could run is refused, what nobody
needs (example inputs, guards, histories of nodes) is left out, and PyTorch is given a new archive
with the rest: JSON that has been looked through, and the bytes of plain tensors.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nacre.base.excerpt import backquote
from nacre.core.aten.remedies import OTHERWISE
from nacre.core.importing.findings import refusal
from nacre.core.rules.torch import TCH03, TCH05
from nacre.core.torch.folding import first_line
from nacre.core.torch.library import silenced, torch
from nacre.core.torch.pt2.graph_values import (
    LONGEST_NAME,
    MOST_OPEN_AXES,
    long_name,
    most_open_axes,
    objects_of,
    prune_values,
    repeated_output,
    unfit_name,
)
from nacre.core.torch.pt2.size_expressions import ExpressionBudget
from nacre.core.torch.remedies import NEWER

_MODEL = "models/model.json"
_CONFIGS = ("data/weights/model_weights_config.json", "data/constants/model_constants_config.json")
_SAMPLES = "data/sample_inputs/model.pt"
_PLAIN = re.compile(
    r"(archive_format|archive_version|byteorder|version|\.data/\w+|\.format_version"
    r"|\.storage_alignment|data/weights/weight_[0-9]+|data/constants/tensor_[0-9]+)"
)
_LAYOUTS = frozenset({None, "builtins.tuple", "builtins.list", "builtins.dict",
                      "collections.OrderedDict"})  # fmt: skip
# Where a node stands in the code, and the modules around it: each with a key, a path and a type.
_NAME = r"(?:[^,;()\[\]]|\[[^,;()\[\]]*\])*"
_PLACES = {
    "stack_trace": re.compile(r"(?s).*"),
    "nn_module_stack": re.compile(rf"{_NAME},{_NAME},{_NAME}(?:;{_NAME},{_NAME},{_NAME})*"),
}
_CALLS = ("torch.ops.aten.", "torch.ops.higher_order.", "_operator.", "math.", "torch.sym_")
_LONGEST_TRACE = 20_000
_MOST_CAUSES = 20  # of an error, each for the one before
_MOST_ELEMENTS = 1 << 28  # of a tensor whose elements lie on each other in the file
_PLAIN_ONES = "keep only plain tensors as parameters and buffers, and export the model again"
_ADVICE = "save it as `torch.export.save(torch.export.export(module, args), path)`"


def read_program(path: Path) -> Any:  # noqa: ANN401 - ExportedProgram
    """The program of a file; InputError where it is none, or where it would run code."""
    name = str(path)
    entries = _entries(path, name)
    clean = _clean_archive(entries, name)
    try:
        with silenced():
            program = _load(clean)
    except Exception as error:  # PyTorch's reader raises whatever the JSON makes it meet
        cause = _root_cause(error)
        message = f"PyTorch cannot read the program: {type(cause).__name__}: {first_line(cause)}"
        raise refusal(TCH03, name, message, NEWER) from None
    for title, tensor in {**program.state_dict, **program.constants}.items():
        if tensor.numel() > max(_MOST_ELEMENTS, len(clean)):
            message = f"`{title}` has {tensor.numel():,} elements, more than the file has bytes"
            raise refusal(TCH03, name, message, _ADVICE)
    for title, tensor in program.constants.items():
        # It is a view of bytes, which a program cannot be exported with again.
        program.constants[title] = tensor.clone()
    return program


def _load(raw: bytes) -> Any:  # noqa: ANN401 - ExportedProgram
    """What `torch.export.load` gives, which only logs why it cannot read a file."""
    from torch.export.pt2_archive._package import load_pt2

    return load_pt2(io.BytesIO(raw)).exported_programs["model"]


def _root_cause(error: BaseException) -> BaseException:
    """What an error was raised for: the last of its causes."""
    for _ in range(_MOST_CAUSES):
        if error.__cause__ is None:
            break
        error = error.__cause__
    return error


def _entries(path: Path, name: str) -> dict[str, bytes]:
    """The entries of the archive, without the folder that all of them lie in."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            # What is compressed, or lies on each other, could be far larger than the file; PyTorch
            # writes neither.
            is_plain = all(info.compress_type == zipfile.ZIP_STORED for info in infos)
            is_plain &= sum(info.file_size for info in infos) <= path.stat().st_size
            found = {info.filename: archive.read(info) for info in infos} if is_plain else {}
    except OSError as error:
        reason = error.strerror or str(error)
        help_ = "check the name, and that the file may be read"
        raise refusal(TCH03, name, f"cannot read the file: {reason}", help_) from None
    except Exception as error:  # zipfile has kinds of error of its own, and lets others through
        message = f"this is no archive, or a damaged one: {first_line(error)}"
        raise refusal(TCH03, name, message, _ADVICE) from None
    if not is_plain:
        message = "entries of the archive are compressed or overlap, expected plain ones"
        raise refusal(TCH03, name, message, _ADVICE)
    roots = {entry.partition("/")[0] for entry in found}
    if len(roots) != 1 or any("/" not in entry for entry in found):
        raise refusal(TCH03, name, "this is no program of `torch.export.save`", _ADVICE)
    entries = {entry.partition("/")[2]: raw for entry, raw in found.items()}
    if entries.get("archive_format") != b"pt2" or _MODEL not in entries:
        raise refusal(TCH03, name, "this is no program of `torch.export.save`", _ADVICE)
    return entries


def _clean_archive(entries: dict[str, bytes], name: str) -> bytes:
    """A new archive of what is safe to load."""
    kept: dict[str, bytes] = {_SAMPLES: b""}
    for entry, raw in entries.items():
        if entry == _MODEL:
            kept[entry] = _write_json(_model(_parse_json(raw, entry, name), name), entry, name)
        elif entry in _CONFIGS:
            _check_payloads(_parse_json(raw, entry, name), name)
            kept[entry] = raw
        elif _PLAIN.fullmatch(entry):
            kept[entry] = raw
        elif entry != _SAMPLES and not entry.startswith("extra/"):
            raise refusal(
                TCH05, name, f"the archive holds `{entry}`, expected only weights", _PLAIN_ONES
            )
    buffer = io.BytesIO()
    # By its own hand: PyTorch wants entries aligned and not compressed.
    writer = torch()._C.PyTorchFileWriter(buffer)
    for entry, raw in kept.items():
        if not entry.startswith(".") and entry not in ("version", "byteorder"):
            writer.write_record(entry, raw, len(raw))
    writer.write_end_of_file()
    return buffer.getvalue()


def _parse_json(raw: bytes, entry: str, name: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        message = f"`{entry}` of the archive is no JSON: {first_line(error)}"
        raise refusal(TCH03, name, message, _ADVICE) from None


def _write_json(value: Any, entry: str, name: str) -> bytes:  # noqa: ANN401 - JSON
    try:
        return json.dumps(value).encode()
    except RecursionError as error:
        message = f"`{entry}` of the archive is nested too deep: {first_line(error)}"
        raise refusal(TCH03, name, message, _ADVICE) from None


def _check_payloads(config: Any, name: str) -> None:  # noqa: ANN401 - JSON
    """Every tensor must be plain bytes."""
    payloads = config.get("config") if isinstance(config, dict) else None
    if not isinstance(payloads, dict) or not all(isinstance(p, dict) for p in payloads.values()):
        message = "the archive's list of tensors is malformed, expected one object for each"
        raise refusal(TCH03, name, message, _ADVICE)
    for title, payload in payloads.items():
        path_name = str(payload.get("path_name"))
        is_plain = re.fullmatch(r"(weight|tensor)_[0-9]+", path_name) is not None
        if not is_plain or payload.get("use_pickle", True):
            message = f"`{title}` is a pickled object, expected a plain tensor"
            raise refusal(TCH05, name, message, _PLAIN_ONES)


def _model(model: Any, name: str) -> Any:  # noqa: ANN401 - JSON
    """The graph, looked through, without what only tools for debugging read."""
    if (wrong_name := long_name(model)) is not None:
        message = f"a name has {len(wrong_name):,} characters, expected at most {LONGEST_NAME:,}"
        raise refusal(TCH05, name, f"{message}: {backquote(wrong_name)}", _ADVICE)
    if (wrong_name := unfit_name(model)) is not None:
        message = f"a name is {backquote(wrong_name)}, expected letters, digits, `_` and `.`"
        raise refusal(TCH05, name, message, _ADVICE)
    if (wrong_name := repeated_output(model)) is not None:
        message = (
            f"two nodes give {backquote(wrong_name)}, expected a name of its own for each value"
        )
        raise refusal(TCH03, name, message, _ADVICE)
    budget = ExpressionBudget()
    _check_sizes(model, name, budget.problem)
    prune_values(model)
    _check_sizes(model, name, budget.repeated)
    if (count := most_open_axes(model)) > MOST_OPEN_AXES:
        message = f"a value has {count:,} open sizes, expected at most {MOST_OPEN_AXES}"
        raise refusal(TCH05, name, message, "export the model with fixed shapes")
    for node in objects_of(model):
        if isinstance(node.get("metadata"), dict):
            node["metadata"] = _texts(node["metadata"])
        if "guards_code" in node:
            node["guards_code"] = []
        if isinstance(node.get("module_call_graph"), list):
            node["module_call_graph"] = node["module_call_graph"][:1]
        for key in ("in_spec", "out_spec"):
            if isinstance(node.get(key), str):
                _check_layout(node[key], name)
        target = node.get("target")
        if isinstance(target, str) and "inputs" in node and not target.startswith(_CALLS):
            message = f"a node calls `{target[:80]}`, expected an ATen operation"
            raise refusal(TCH05, name, message, OTHERWISE)
    return model


def _check_sizes(model: Any, name: str, judge: Callable[[Any], str | None]) -> None:  # noqa: ANN401
    """Every open size must be arithmetic that there are steps for."""
    for node in objects_of(model):
        problem = judge(node["expr_str"]) if "expr_str" in node else None
        if problem is not None:
            message = f"a size is {str(node['expr_str'])[:80]!r}, {problem}"
            raise refusal(TCH05, name, message, "export the model with fixed shapes")


def _texts(metadata: dict[str, Any]) -> dict[str, str]:
    """Of what is told about a node, the texts that name its place; PyTorch takes them as they are.

    The others it looks up or reads on.
    """
    given = {name: metadata.get(name) for name in _PLACES}
    return {
        name: text
        for name, text in given.items()
        if isinstance(text, str) and len(text) <= _LONGEST_TRACE and _PLACES[name].fullmatch(text)
    }


def _check_layout(text: str, name: str) -> None:
    """Arguments may lie in tuples, lists and dicts; PyTorch imports what other types name."""
    for node in objects_of(_parse_json(text.encode(), "in_spec", name)):
        if "type" in node and node["type"] not in _LAYOUTS:
            message = f"arguments or results lie in a `{str(node['type'])[:80]}`"
            help_ = "export a module that takes and gives tensors, tuples, lists and dicts"
            raise refusal(TCH05, name, message, help_)
