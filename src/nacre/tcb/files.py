"""Images in files: `.tcb` as bytes, and assembler text."""

from __future__ import annotations

from pathlib import Path

from nacre.base.diagnostics import InputError, has_errors
from nacre.base.files import write_whole
from nacre.base.source import Unreadable, decode_source, read_bytes, whole_file
from nacre.tcb.binary.container import MAGIC
from nacre.tcb.binary.encoding import decode, encode
from nacre.tcb.image import Image
from nacre.tcb.judge import judge
from nacre.tcb.limits import MAX_FILE_BYTES
from nacre.tcb.rules.text import TCB08
from nacre.tcb.text.assembly import Assembled, assemble


def save_image(image: Image, path: Path) -> None:
    """Write an image as bytes, whole or not at all."""
    write_whole(path, [encode(image)])


def load_image(path: Path) -> Image:
    """The image of a file of bytes or of text; InputError where it breaks a promise."""
    data = read_bytes(path, limit=MAX_FILE_BYTES)
    if isinstance(data, Unreadable):
        raise InputError([TCB08.at(whole_file(str(path)), f"{path} {data.reason}")])
    return read_image(data, str(path))


def read_image(data: bytes, name: str) -> Image:
    """The same of bytes that are at hand."""
    if data.startswith(MAGIC[:1]):
        image = decode(data, name)
        findings = judge(image, name)
    else:
        image, spans = _read_text(data, name)
        findings = judge(image, name, spans)
    if has_errors(findings):
        raise InputError(findings)
    return image


def _read_text(data: bytes, name: str) -> Assembled:
    source = decode_source(data, name=name)
    if isinstance(source, Unreadable):
        message = f"this is neither an image nor its text: {source.reason}"
        raise InputError([TCB08.at(whole_file(name), message)])
    return assemble(source)
