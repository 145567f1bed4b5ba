"""`nacre llm info`: what a GGUF file says of itself, and what is in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from nacre.cli.core.files import format_option, report_findings
from nacre.cli.llm.group import llm, open_gguf
from nacre.cli.nac.files import plural, table

if TYPE_CHECKING:
    from nacre.llm.gguf.file import GgufFile

_WIDEST_VALUE = 100


@llm.command()
@click.argument("file", metavar="FILE.gguf")
@click.option("--tensors", "with_tensors", is_flag=True, help="List every tensor, too.")
@format_option
def info(file: str, with_tensors: bool, output: str) -> int:
    """Say what a file has: metadata, tensors by type, sizes."""

    def work() -> None:
        opened = open_gguf(file)
        if output == "json":
            click.echo(json.dumps(_as_json(opened), indent=2))
        else:
            click.echo(_as_text(opened, with_tensors))

    return report_findings(work, output)


def _as_json(file: GgufFile) -> dict[str, object]:
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


def _as_text(file: GgufFile, with_tensors: bool) -> str:
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
    parts = [head, _metadata_table(file), type_table if types else ""]
    if with_tensors and file.tensors:
        parts.append(_tensor_table(file))
    return "\n\n".join(part for part in parts if part)


def _metadata_table(file: GgufFile) -> str:
    from nacre.llm.gguf.info import value_text

    rows = [(key, value_text(value)) for key, value in file.metadata.items()]
    return table([("key", "value"), *((k, _cut(v)) for k, v in rows)]) if rows else ""


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST_VALUE else f"{text[:_WIDEST_VALUE]}..."


def _tensor_table(file: GgufFile) -> str:
    rows = [
        (row.name, " x ".join(map(str, row.shape)), row.format.name, f"{row.size_bytes:,}")
        for row in file.tensors.values()
    ]
    return table([("tensor", "shape", "type", "bytes"), *rows], frozenset({3}))
