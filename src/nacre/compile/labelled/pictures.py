"""Folders of pictures as labelled samples, by a small file that says how they become inputs.

Folders and files come from strangers: what is read is bounded, and links lead nowhere.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.compile.labelled.metrics import data_error
from nacre.core.values import Array

_MOST_TEXT = 1 << 16  # bytes of the file that declares
_MOST_FILE = 64 << 20  # bytes of a picture
_MOST_PIXELS = 1 << 26
_MOST_SIDE = 8192
_MOST_PICTURES = 100_000
_MOST_BYTES = 4 << 30  # of all inputs together
_FORMATS = ("PNG", "JPEG", "BMP", "PPM", "GIF", "WEBP", "TIFF")
_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".gif", ".webp", ".tif", ".tiff"}
)
Resize = Literal["stretch", "cover", "fit"]
Channels = Literal["rgb", "bgr", "gray"]
Layout = Literal["nchw", "nhwc"]


@dataclass(frozen=True)
class Preprocessing:
    """How a picture becomes an input: `(pixel * scale - mean) / deviation`, pixels up to 255."""

    input: str
    size: tuple[int, int]  # height, width
    resize: Resize = "stretch"
    channels: Channels = "rgb"
    layout: Layout = "nchw"
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.0,)
    deviation: tuple[float, ...] = (1.0,)
    fill: int = 0  # what surrounds a picture that is fitted
    labels: tuple[str, ...] = field(default=())  # folders in the order of classes


def read_preprocessing(path: Path) -> Preprocessing:
    """The file that declares it, in TOML; InputError says what is wrong with it."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(_MOST_TEXT + 1)
    except (OSError, ValueError) as error:
        raise data_error(f"it cannot be read: {error}", file=str(path)) from None
    if len(raw) > _MOST_TEXT:
        raise data_error(f"it has more than {_MOST_TEXT:,} bytes", file=str(path))
    try:
        given = tomllib.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise data_error(f"it is no TOML: {error}", file=str(path)) from None
    problem = _problem(given)
    if problem is not None:
        raise data_error(*problem, file=str(path))
    values: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in given.items()}
    for name in ("mean", "deviation"):
        if isinstance(values.get(name), int | float):
            values[name] = (values[name],)
    return Preprocessing(**values)


def _problem(given: Mapping[str, Any]) -> tuple[str, str | None] | None:
    """The first thing that is wrong with what a file declares."""
    known = [one.name for one in fields(Preprocessing)]
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
            return f"there is no {backquote(name)}", hint
    for name in ("input", "size"):
        if name not in given:
            return f"`{name}` is missing", None
    words = {"resize": get_args(Resize), "channels": get_args(Channels), "layout": get_args(Layout)}
    for name, allowed in words.items():
        if name in given and given[name] not in allowed:
            return f"`{name}` is {given[name]!r}, expected one of {', '.join(allowed)}", None
    return _number_problem(given)


def _number_problem(given: Mapping[str, Any]) -> tuple[str, str | None] | None:
    size = given["size"]
    if not (isinstance(size, list) and len(size) == 2 and all(_is_side(side) for side in size)):
        return f"`size` is {size!r}, expected a height and a width up to {_MOST_SIDE}", None
    if not isinstance(given["input"], str):
        return "`input` is no name", None
    planes = 1 if given.get("channels") == "gray" else 3
    for name in ("scale", "mean", "deviation"):
        value = given.get(name, 1.0)
        numbers = value if isinstance(value, list) and name != "scale" else [value]
        if not all(_is_number(number) for number in numbers) or len(numbers) not in (1, planes):
            return f"`{name}` is {value!r}, expected a number, or {planes} of them", None
        if name == "deviation" and not all(numbers):
            return "`deviation` has a 0", None
    fill = given.get("fill", 0)
    if type(fill) is not int or not 0 <= fill <= 255:
        return f"`fill` is {fill!r}, expected a number from 0 to 255", None
    labels = given.get("labels", [])
    if not (isinstance(labels, list) and all(isinstance(label, str) for label in labels)):
        return "`labels` is no list of names", None
    return ("`labels` has a name twice", None) if len(set(labels)) < len(labels) else None


def _is_side(side: object) -> bool:
    return type(side) is int and 0 < side <= _MOST_SIDE


def _is_number(number: object) -> bool:
    is_real = isinstance(number, int | float) and not isinstance(number, bool)
    return is_real and isfinite(float(number))  # type: ignore[arg-type]


# Pictures


def read_pictures(folder: Path, how: Preprocessing) -> dict[str, Array]:
    """Inputs and labels of all pictures: a folder a class, in the order of names or of `labels`."""
    classes = list(how.labels) or [path.name for path in _entries(folder) if path.is_dir()]
    if not classes:
        raise data_error("the folder has no folders, one for each class", file=str(folder))
    found: list[tuple[Path, int]] = []
    for number, name in enumerate(classes):
        inside = folder / name
        if Path(name).name != name or inside.is_symlink() or not inside.is_dir():
            raise data_error(f"{backquote(name)} is no folder in it", file=str(folder))
        found += [(path, number) for path in _pictures(inside)]
        if len(found) > _MOST_PICTURES:
            raise data_error(f"there are more than {_MOST_PICTURES:,} pictures", file=str(folder))
    if not found:
        raise data_error("there is no picture in its folders", file=str(folder))
    planes = 1 if how.channels == "gray" else 3
    if len(found) * planes * how.size[0] * how.size[1] * 4 > _MOST_BYTES:
        message = f"{len(found):,} inputs would take more than {_MOST_BYTES:,} bytes"
        raise data_error(message, file=str(folder))
    inputs = np.stack([read_picture(path, how) for path, _ in found])
    return {how.input: inputs, "label": np.array([number for _, number in found], np.int64)}


def _entries(folder: Path) -> Sequence[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise data_error(f"it cannot be read: {error.strerror}", file=str(folder)) from None
    return [path for path in entries if not path.is_symlink()]


def _pictures(folder: Path) -> Iterator[Path]:
    for path in _entries(folder):
        if path.suffix.lower() in _SUFFIXES and path.is_file():
            yield path


def read_picture(path: Path, how: Preprocessing) -> Array:
    """One picture as an input; InputError where it is none, or too large."""
    try:
        from PIL import Image
    except ImportError:
        message = "pictures are read by the package pillow, which is missing"
        raise data_error(message, "install the extra `images`", str(path)) from None
    try:
        if path.stat().st_size > _MOST_FILE:
            raise data_error(f"it has more than {_MOST_FILE:,} bytes", file=str(path))
        with warnings.catch_warnings(action="ignore"), Image.open(path, formats=_FORMATS) as opened:
            if opened.width * opened.height > _MOST_PIXELS:
                raise data_error(f"it has more than {_MOST_PIXELS:,} pixels", file=str(path))
            pixels = _resized(opened.convert("L" if how.channels == "gray" else "RGB"), how)
    except (OSError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError) as error:
        kind = type(error).__name__
        raise data_error(f"it is no picture that can be read ({kind})", file=str(path)) from None
    array = np.asarray(pixels, np.float32).reshape(*how.size, -1)
    if how.channels == "bgr":
        array = array[:, :, ::-1]
    mean, deviation = (np.array(each, np.float32) for each in (how.mean, how.deviation))
    scaled = (array * np.float32(how.scale) - mean) / deviation
    made: Array = np.ascontiguousarray(
        scaled.transpose(2, 0, 1) if how.layout == "nchw" else scaled, np.float32
    )
    return made


def _resized(picture: Any, how: Preprocessing) -> Any:  # noqa: ANN401 - of Pillow, which may be missing
    """Stretched to the size, or with its own sides: cut in the middle, or surrounded."""
    from PIL import Image, ImageOps

    height, width = how.size
    size, method = (width, height), Image.Resampling.BILINEAR
    if how.resize == "stretch":
        return picture.resize(size, method)
    if how.resize == "cover":
        return ImageOps.fit(picture, size, method)
    fill = how.fill if how.channels == "gray" else (how.fill,) * 3
    return ImageOps.pad(picture, size, method, color=fill)
