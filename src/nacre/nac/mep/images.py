"""Images: PNG, JPEG, PPM and PGM read within bounds, PNG written, and what classifiers take."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from io import BytesIO

import numpy as np

from nacre.base.excerpt import backquote
from nacre.core.values import Array
from nacre.nac.mep.budget import Budget
from nacre.nac.mep.values import Fault, brief_error, describe
from nacre.nac.rules.plans import NAC91, NAC95

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of a pixel, by the type of colour
_PALETTE = 3
_JPEG = b"\xff\xd8\xff"
_JPEG_BYTES = 16  # a pixel, of what Pillow holds and of the array
_PNM = re.compile(rb"P([56])\s+(?:#[^\n]{0,200}\s+)?(\d{1,9})\s+(\d{1,9})\s+(\d{1,5})\s")
_SLANT_STEPS = 16  # that a slanted line of pixels costs
_SHORT, _MIDDLE = 256, 224
_MEAN = np.array([0.485, 0.456, 0.406])
_DEVIATION = np.array([0.229, 0.224, 0.225])


def read_image(view: memoryview, path: str, budget: Budget) -> Array:
    """The pixels of a file: u8 [height, width, 3]."""
    if bytes(view[:8]) == _SIGNATURE:
        return _png(view, path, budget)
    if bytes(view[:3]) == _JPEG:
        return _jpeg(view, path, budget)
    match = _PNM.match(view[:512])
    if match is None:
        raise Fault(NAC95, f"{backquote(path)} is no image that a plan reads: PNG, JPEG, PPM, PGM")
    kind, width, height, most = (int(group) for group in match.groups())
    channels = 3 if kind == 6 else 1
    bytes_ = width * height * channels
    if most != 255 or not bytes_ or len(view) - match.end() != bytes_:
        message = f"{backquote(path)} has {len(view) - match.end():,} bytes of pixels for"
        raise Fault(NAC95, f"{message} {width} x {height} x {channels} with 8 bits")
    budget.take(4 * bytes_)
    pixels = np.frombuffer(view[match.end() :], np.uint8).reshape(height, width, channels)
    return np.array(np.broadcast_to(pixels, (height, width, 3)))


def _jpeg(view: memoryview, path: str, budget: Budget) -> Array:
    """Decoded by Pillow, whose reader looks at the header first."""
    try:
        from PIL import Image
    except ImportError:
        help_ = "`pip install 'nacre[images]'`, or give it as PNG"
        raise Fault(NAC95, f"{backquote(path)} is a JPEG, which needs Pillow", help_) from None
    try:
        with Image.open(BytesIO(view), formats=["JPEG"]) as image:
            width, height = image.size
            budget.take(_JPEG_BYTES * width * height)
            return np.array(image.convert("RGB"), np.uint8)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        message = f"{backquote(path)} cannot be decoded: {brief_error(error)}"
        raise Fault(NAC95, message) from None


def _png(view: memoryview, path: str, budget: Budget) -> Array:
    parts: dict[bytes, list[memoryview]] = {}
    for name, content in _chunks(view, path):
        parts.setdefault(name, []).append(content)
    header = parts.get(b"IHDR", [memoryview(b"")])[0]
    if len(header) != 13:
        raise Fault(NAC95, f"{backquote(path)} has no header")
    width, height, depth, colour, packing, filtering, interlace = struct.unpack(">IIBBBBB", header)
    channels = _CHANNELS.get(colour, 0)
    is_deep = depth == 16 and colour != _PALETTE
    if not channels or not (depth == 8 or is_deep) or packing or filtering or interlace:
        message = f"has {depth} bits, type {colour} and interlacing {interlace}"
        raise Fault(NAC95, f"{backquote(path)} {message}, which is not read")
    pixel = channels * (2 if is_deep else 1)
    row = 1 + width * pixel
    if not width or not height:
        raise Fault(NAC95, f"{backquote(path)} has no pixels")
    budget.take(16 * row * height)  # filters work on numbers of 16 bits
    budget.charge(steps=_SLANT_STEPS * (height + width))
    raw = _inflate(parts.get(b"IDAT", []), row * height, path)
    lines = np.frombuffer(raw, np.uint8).reshape(height, row)
    pixels = _unfilter(lines[:, 0], lines[:, 1:].reshape(height, width, pixel), path)
    pixels = pixels[:, :, ::2] if is_deep else pixels
    if colour == _PALETTE:
        return _apply_palette(pixels[:, :, 0], parts.get(b"PLTE", []), path)
    return np.array(np.broadcast_to(pixels[:, :, : 3 if channels > 2 else 1], (height, width, 3)))


def _chunks(view: memoryview, path: str) -> Iterator[tuple[bytes, memoryview]]:
    at = len(_SIGNATURE)
    while at + 12 <= len(view):
        length, name = struct.unpack(">I4s", view[at : at + 8])
        end = at + 8 + length
        if end + 4 > len(view):
            break
        content = view[at + 8 : end]
        if zlib.crc32(view[at + 4 : end]) != int.from_bytes(view[end : end + 4], "big"):
            raise Fault(NAC95, f"{backquote(path)} is damaged at byte {at:,}")
        yield name, content
        if name == b"IEND":
            return
        at = end + 4
    raise Fault(NAC95, f"{backquote(path)} ends too early")


def _inflate(parts: list[memoryview], wanted: int, path: str) -> bytes:
    stream = zlib.decompressobj()
    try:
        # One byte more than wanted is enough to see that there is too much.
        content = stream.decompress(b"".join(parts), wanted + 1)
    except zlib.error as error:
        raise Fault(NAC95, f"{backquote(path)} is damaged: {error}") from None
    if len(content) != wanted:
        message = (
            f"{backquote(path)} has {len(content):,} bytes of pixels or more, expected {wanted:,}"
        )
        raise Fault(NAC95, message)
    return content


def _unfilter(filters: Array, raw: Array, path: str) -> Array:
    """The pixels behind the filters of each line.

    A pixel follows from those to its left, above and left above. All pixels of a slanted line are
    known at one time, so that it is height + width steps and not one for each pixel.
    """
    if filters.max() > 4:
        raise Fault(NAC95, f"{backquote(path)} has filter {filters.max()}, expected 0 to 4")
    height, width, pixel = raw.shape
    pixels = np.zeros((height + 1, width + 1, pixel), np.int16)
    for slant in range(height + width - 1):
        rows = np.arange(max(0, slant - width + 1), min(height, slant + 1))
        columns = slant - rows
        left, up = pixels[rows + 1, columns], pixels[rows, columns + 1]
        corner = pixels[rows, columns]
        near = left + up - corner
        of_left, of_up = np.abs(near - left), np.abs(near - up)
        of_corner = np.abs(near - corner)
        nearest = np.where(of_up <= of_corner, up, corner)
        paeth = np.where((of_left <= of_up) & (of_left <= of_corner), left, nearest)
        guesses = np.stack([np.zeros_like(left), left, up, (left + up) // 2, paeth])
        guess = guesses[filters[rows], np.arange(len(rows))]
        pixels[rows + 1, columns + 1] = (raw[rows, columns] + guess) & 255
    return pixels[1:, 1:].astype(np.uint8)


def _apply_palette(indices: Array, palettes: list[memoryview], path: str) -> Array:
    palette = bytes(palettes[0]) if palettes else b""
    if len(palette) % 3 or indices.max() >= len(palette) // 3:
        raise Fault(NAC95, f"{backquote(path)} has a colour that its palette does not have")
    return np.frombuffer(palette, np.uint8).reshape(-1, 3)[indices]


def prepare_image(pixels: Array, budget: Budget) -> Array:
    """Pixels [height, width, 3] as classifiers of ImageNet take them: f32 [1, 3, 224, 224]."""
    height, width = pixels.shape[:2]
    short = min(height, width)
    sizes = (_SHORT * height // short, _SHORT * width // short)
    weights = _MIDDLE * (height + width)
    budget.take(8 * (weights + 3 * height * width + 3 * _MIDDLE * width))
    budget.charge(8 * 3 * height * width * _MIDDLE // 64)  # products of matrices are fast
    down, across = _weights(height, sizes[0]), _weights(width, sizes[1])
    # Only the middle is computed: a narrow image is not drawn out to its whole length.
    resized = np.einsum("yh,hwc->ywc", down, pixels.astype(np.float64), optimize=True)
    resized = np.einsum("xw,ywc->yxc", across, resized, optimize=True)
    normal = (resized / 255 - _MEAN) / _DEVIATION
    return np.ascontiguousarray(normal.transpose(2, 0, 1)[None].astype(np.float32))


def _weights(size: int, wanted: int) -> Array:
    """How much each pixel counts for each of the middle places: a triangle as wide as a place."""
    scale = size / wanted
    support = max(scale, 1.0)
    first = round((wanted - _MIDDLE) / 2)
    centres = (np.arange(first, first + _MIDDLE) + 0.5) * scale
    distance = np.abs(np.arange(size) + 0.5 - centres[:, None]) / support
    weights = np.maximum(0.0, 1.0 - distance)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def write_png(value: Array) -> bytes:
    """The bytes of a PNG file; floats from -1 to 1 become 0 to 255."""
    image = value[0] if value.ndim == 4 and value.shape[0] == 1 else value
    if image.ndim == 2:
        image = image[:, :, None]
    is_planar = image.dtype.kind == "f" and image.ndim == 3 and image.shape[0] in (1, 3, 4)
    if is_planar and value.ndim > 2:
        image = image.transpose(1, 2, 0)
    if image.dtype.kind == "f":
        image = np.rint(np.nan_to_num(image.astype(np.float64) / 2 + 0.5).clip(0, 1) * 255)
        image = image.astype(np.uint8)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3, 4):
        message = f"the image is {describe(value)}, expected u8 or floats of 1, 3 or 4 channels"
        raise Fault(NAC91, message)
    if not image.size:
        raise Fault(NAC91, "the image has no pixels")
    height, width, channels = image.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)
    lines[:, 1:] = image.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(name, content) for name, content in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    body = name + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))
