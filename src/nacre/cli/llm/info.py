"""`nacre llm info`: what a model or a bundle says of itself, and what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from nacre.cli.core.files import format_option, report_findings
from nacre.cli.llm.group import is_bundle_folder, llm, open_model_file
from nacre.cli.nac.files import plural, table

if TYPE_CHECKING:
    from nacre.compile.bundle.bundle import Bundle
    from nacre.llm.bundle.llm_bundle import LlmBundle
    from nacre.llm.checkpoint.checkpoint import Checkpoint
    from nacre.llm.gguf.file import GgufFile
    from nacre.llm.gguf.metadata import Value
    from nacre.llm.model.weights import ModelFile

_WIDEST_VALUE = 100


@llm.command()
@click.argument("source", metavar="FILE.gguf|FILE.onnx|CHECKPOINT|BUNDLE")
@click.option("--tensors", "with_tensors", is_flag=True, help="List every tensor, too.")
@format_option
def info(source: str, with_tensors: bool, output: str) -> int:
    """Say what a model has: metadata, tensors by type, sizes; or what plans a bundle has."""

    def work() -> None:
        is_json = output == "json"
        if is_bundle_folder(source):
            from nacre.llm.bundle.llm_bundle import LlmBundle

            bundle = LlmBundle.load(source, cache=True)
            said = _bundle_json(bundle) if is_json else _bundle_text(bundle)
        else:
            model = open_model_file(source)
            said = _model_json(model) if is_json else _model_text(model, with_tensors)
        click.echo(json.dumps(said, indent=2) if is_json else said)

    return report_findings(work, output)


def _model_json(model: ModelFile) -> dict[str, object]:
    from nacre.llm.checkpoint.checkpoint import Checkpoint
    from nacre.llm.gguf.file import GgufFile
    from nacre.llm.gguf.info import metadata_json

    if isinstance(model, GgufFile):
        return _gguf_json(model)
    if isinstance(model, Checkpoint):
        return _checkpoint_json(model)
    return {"metadata": metadata_json(model.metadata)}


def _model_text(model: ModelFile, with_tensors: bool) -> str:
    from nacre.llm.checkpoint.checkpoint import Checkpoint
    from nacre.llm.gguf.file import GgufFile

    if isinstance(model, GgufFile):
        return _gguf_text(model, with_tensors)
    if isinstance(model, Checkpoint):
        return _checkpoint_text(model, with_tensors)
    return "\n\n".join(["decoder from ONNX", _metadata_table(model.metadata)])


def _bundle_json(bundle: LlmBundle) -> dict[str, object]:
    from nacre.llm.gguf.info import metadata_json

    made = bundle.decode.manifest
    plans = [
        {
            "plan": name, "tokens": tokens, "rows": rows, "layers": len(plan.manifest.layers),
            "program_bytes": len(plan.program), "weights_bytes": len(plan.weights),
        }
        for name, tokens, rows, plan in _plans(bundle)
    ]  # fmt: skip
    return {
        "device": made.device,
        "precision": made.precision,
        "context": bundle.context,
        "chunk": bundle.chunk,
        "plans": plans,
        "metadata": metadata_json(bundle.head.metadata),
    }


def _bundle_text(bundle: LlmBundle) -> str:
    made = bundle.decode.manifest
    head = (
        f"language model for {made.device} in {bundle.decode.precision_text}: a cache of "
        f"{plural(bundle.context, 'token')}, prompts in chunks of {bundle.chunk:,}"
    )
    rows = [
        (name, f"{tokens:,}", f"{rows:,}", f"{len(plan.manifest.layers):,}",
         f"{len(plan.program):,}", f"{len(plan.weights):,}")
        for name, tokens, rows, plan in _plans(bundle)
    ]  # fmt: skip
    heads = ("plan", "tokens", "rows of the cache", "layers", "bytes of NEM", "bytes of weights")
    plans = table([heads, *rows], frozenset(range(1, len(heads))))
    return "\n\n".join([head, plans, _metadata_table(bundle.head.metadata)])


def _plans(bundle: LlmBundle) -> list[tuple[str, int, int, Bundle]]:
    """The name of each plan, the tokens that it takes, the rows that it sees, and itself."""
    found = [("decode", 1, rows, plan) for rows, plan in bundle.shorter.items()]
    found.append(("decode", 1, bundle.context, bundle.decode))
    if bundle.chunk > 1:
        found.append(("prefill", bundle.chunk, bundle.context, bundle.prefill))
    return found


def _checkpoint_json(model: Checkpoint) -> dict[str, object]:
    from nacre.llm.gguf.info import metadata_json

    return {
        "tensors": len(model.tensors),
        "elements": _elements(model),
        "metadata": metadata_json(model.metadata),
        "tensor_list": [{"name": n, "shape": t.shape} for n, t in model.tensors.items()],
    }


def _checkpoint_text(model: Checkpoint, with_tensors: bool) -> str:
    head = (
        f"checkpoint of transformers: {plural(len(model.tensors), 'tensor')} of "
        f"{plural(_elements(model), 'element')}; names are those of GGUF"
    )
    parts = [head, _metadata_table(model.metadata)]
    if with_tensors:
        rows = [(name, " x ".join(map(str, t.shape))) for name, t in model.tensors.items()]
        parts.append(table([("tensor", "shape"), *rows]))
    return "\n\n".join(parts)


def _elements(model: Checkpoint) -> int:
    return sum(prod(tensor.shape) for tensor in model.tensors.values())


def _gguf_json(file: GgufFile) -> dict[str, object]:
    from nacre.llm.gguf.info import gguf_info, metadata_json

    tensors = [
        {
            "name": row.name,
            "shape": row.shape,
            "type": row.format.name,
            "offset": row.offset,
            "size_bytes": row.size_bytes,
        }
        for row in file.tensors.values()
    ]
    return {
        **to_builtins(gguf_info(file)),
        "metadata": metadata_json(file.metadata),
        "tensor_list": tensors,
    }


def _gguf_text(file: GgufFile, with_tensors: bool) -> str:
    from nacre.llm.gguf.info import gguf_info

    found = gguf_info(file)
    head = (
        f"GGUF {found.version}, {found.byte_order}-endian: {plural(found.file_bytes, 'byte')}, "
        f"{plural(found.pairs, 'pair')} of metadata, {plural(found.tensors, 'tensor')} of "
        f"{plural(found.elements, 'element')} in {plural(found.tensor_bytes, 'byte')}"
    )
    types = [
        (u.type, f"{u.tensors:,}", f"{u.elements:,}", f"{u.size_bytes:,}", f"{u.bits:.4g}")
        for u in found.types
    ]
    type_table = table(
        [("type", "tensors", "elements", "bytes", "bits"), *types], frozenset({1, 2, 3, 4})
    )
    parts = [head, _metadata_table(file.metadata), type_table if types else ""]
    if with_tensors and file.tensors:
        parts.append(_tensor_table(file))
    return "\n\n".join(part for part in parts if part)


def _metadata_table(metadata: Mapping[str, Value]) -> str:
    from nacre.llm.gguf.info import value_text

    rows = [(key, value_text(value)) for key, value in metadata.items()]
    return table([("key", "value"), *((k, _cut(v)) for k, v in rows)]) if rows else ""


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST_VALUE else f"{text[:_WIDEST_VALUE]}..."


def _tensor_table(file: GgufFile) -> str:
    rows = [
        (row.name, " x ".join(map(str, row.shape)), row.format.name, f"{row.size_bytes:,}")
        for row in file.tensors.values()
    ]
    return table([("tensor", "shape", "type", "bytes"), *rows], frozenset({3}))
