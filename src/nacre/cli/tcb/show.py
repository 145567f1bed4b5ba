"""`nacre tcb info` and `diff`: images in numbers, and what differs between two."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from nacre.base.excerpt import safe
from nacre.cli.core.files import format_option, report_findings
from nacre.cli.exit_status import ERRORS_FOUND
from nacre.cli.inputs import STDIN
from nacre.cli.nac.files import table
from nacre.cli.tcb.group import open_image, plural, tcb

if TYPE_CHECKING:
    from nacre.tcb.diff import Difference
    from nacre.tcb.image import Image
    from nacre.tcb.info import ImageInfo


@tcb.command()
@click.argument("file", metavar="FILE.tcb")
@format_option
def info(file: str, output: str) -> int:
    """Say what an image has: blocks, tags, memories, ports, bytes."""

    def work() -> None:
        from nacre.tcb.info import image_info

        image = open_image(file).image
        found = image_info(image)
        if output == "json":
            ports = [to_builtins(port) for port in image.ports]
            click.echo(json.dumps({**to_builtins(found), "port_list": ports}, indent=2))
        else:
            click.echo(_info_text(found, image))

    return report_findings(work, output)


def _info_text(found: ImageInfo, image: Image) -> str:
    source = f", from {found.source}" if found.source else ""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.kinds.items())
    blocks = plural(sum(found.kinds.values()), "block")
    repeats = f"{plural(found.repeats, 'repeat')} up to {found.depth} deep"
    head = [
        f"{found.entry}{source}: {plural(found.file_bytes, 'byte')}, bound to {found.device} with "
        f"uarch {found.uarch}",
        f"{blocks} ({kinds or 'none'}), {repeats}, {found.chained:,} chained to the next",
    ]
    parts = ["\n".join(map(safe, head)), _stream_table(found), _memory_table(found)]
    counts = {"operation": found.operations, "unit": found.units, "section": found.sections}
    for what, rows in counts.items():
        if rows:
            unit = "bytes" if what == "section" else "blocks"
            listed = [(name, f"{count:,}") for name, count in rows.items()]
            parts.append(table([(what, unit), *listed], frozenset({1})))
    if image.ports:
        parts.append(_port_table(image))
    return "\n\n".join(part for part in parts if part)


def _stream_table(found: ImageInfo) -> str:
    tags = {use.owner: use for use in found.tags}
    rows = [("stream", "blocks", "repeats", "tags", "of")]
    for stream in found.streams:
        use = tags.pop(stream.stream, None)
        used = "-" if use is None or use.used is None else f"{use.used:,}"
        of = "any number" if use is None or use.available is None else f"{use.available:,}"
        rows.append((stream.stream, f"{stream.blocks:,}", f"{stream.repeats:,}", used, of))
    for use in tags.values():
        of = "any number" if use.available is None else f"{use.available:,}"
        rows.append((use.owner, "-", "-", "-" if use.used is None else f"{use.used:,}", of))
    return table(rows, frozenset({1, 2, 3, 4}))


def _memory_table(found: ImageInfo) -> str:
    rows = [(m.memory, f"{m.used_bytes:,}", f"{m.capacity_bytes:,}") for m in found.memories]
    return table([("memory", "bytes used", "of"), *rows], frozenset({1, 2})) if rows else ""


def _port_table(image: Image) -> str:
    from nacre.tcb.machine.host_arrays import port_text

    rows = [(p.name, p.kind, f"{p.memory}:{p.address:#x}", port_text(p)) for p in image.ports]
    return table([("port", "kind", "at", "holds"), *rows])


@tcb.command()
@click.argument("before", metavar="A.tcb")
@click.argument("after", metavar="B.tcb")
@format_option
def diff(before: str, after: str, output: str) -> int:
    """Say what differs between two images, block by block.

    Exit status: 0 they are equal, 1 they differ, or one is no image, 2 wrong usage.
    """
    if before == after == STDIN:
        raise click.UsageError("one of the two may be standard input")
    found: list[Difference] = []

    def work() -> None:
        from nacre.tcb.diff import differences

        found.extend(differences(open_image(before).image, open_image(after).image))
        if output == "json":
            click.echo(json.dumps(to_builtins(found), indent=2))
        elif found:
            click.echo("\n".join(map(_difference_text, found)))
        else:
            click.echo("the images are equal")

    status = report_findings(work, output)
    return ERRORS_FOUND if found else status


def _difference_text(found: Difference) -> str:
    sign = {"added": "+", "removed": "-", "changed": "~"}[found.change]
    lines = [f"{sign} {found.statement}" + (f": {found.text}" if found.text else "")]
    lines += [f"    {one.field}: {one.before} -> {one.after}" for one in found.fields]
    return "\n".join(map(safe, lines))
