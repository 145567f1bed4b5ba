"""Folders of pictures as labelled samples, by a small file that says how they become inputs.

Folders and files come from strangers: what is read is bounded, and links lead nowhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nacre.base.excerpt import backquote
from nacre.base.hints import setting
from nacre.compile.labelled.metrics import data_error
from nacre.compile.labelled.preprocessing import Preprocessing
from nacre.core.values import Array

_MOST_FILE = 64 << 20  # bytes of a picture
_MOST_PIXELS = 1 << 26
_MOST_PICTURES = 100_000
_MOST_BYTES = 4 << 30  # of all inputs together
_WIDE = frozenset({"I", "F"})  # modes that would be cut to 255 without a word
_FORMATS = ("PNG", "JPEG", "BMP", "PPM", "GIF", "WEBP", "TIFF")
_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".gif", ".webp", ".tif", ".tiff"}
)


def read_pictures(folder: Path, how: Preprocessing, label: str = "label") -> dict[str, Array]:
    """Inputs and labels of all pictures: a folder a class, in the order of names or of `labels`."""
    if label == how.input:
        message = f"{backquote(label)} are the pictures and their labels alike"
        option = setting("another name of the labels with `--label`", "`label=` another name")
        raise data_error(message, f"give {option}", str(folder))
    classes = list(how.labels) or [path.name for path in _entries(folder) if path.is_dir()]
    if not classes:
        raise data_error("the folder has no folders, one for each class", file=str(folder))
    found: list[tuple[Path, int]] = []
    for number, name in enumerate(classes):
        inside = folder / name
        if not name or Path(name).name != name or inside.is_symlink() or not inside.is_dir():
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
    shape = (planes, *how.size) if how.layout == "nchw" else (*how.size, planes)
    inputs = np.empty((len(found), *shape), np.float32)
    for index, (path, _) in enumerate(found):
        inputs[index] = read_picture(path, how)
    return {how.input: inputs, label: np.array([number for _, number in found], np.int64)}


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
        import PIL.Image  # noqa: F401 - a package that may be missing
    except ImportError:
        message = "pictures are read by the package pillow, which is missing"
        raise data_error(message, "install the extra `images`", str(path)) from None
    try:
        problem, pixels = _pixels(path, how)
    except Exception as error:  # damaged files: Pillow has many kinds of error
        problem = f"it is no picture that can be read ({type(error).__name__})"
    if problem is not None:
        raise data_error(problem, file=str(path))
    array = np.asarray(pixels, np.float32).reshape(*how.size, -1)
    if how.channels == "bgr":
        array = array[:, :, ::-1]
    mean, deviation = (np.array(each, np.float32) for each in (how.mean, how.deviation))
    with np.errstate(all="ignore"):  # what is not finite then is found with the other samples
        scaled = (array * np.float32(how.scale) - mean) / deviation
    made: Array = np.ascontiguousarray(
        scaled.transpose(2, 0, 1) if how.layout == "nchw" else scaled, np.float32
    )
    return made


def _pixels(path: Path, how: Preprocessing) -> tuple[str | None, Any]:
    """What a picture has that is refused before it is decoded, or its pixels in the size."""
    from PIL import Image

    if path.stat().st_size > _MOST_FILE:
        return f"it has more than {_MOST_FILE:,} bytes", None
    with warnings.catch_warnings(action="ignore"), Image.open(path, formats=_FORMATS) as opened:
        if opened.width * opened.height > _MOST_PIXELS:
            return f"it has more than {_MOST_PIXELS:,} pixels", None
        if opened.mode.partition(";")[0] in _WIDE:
            return f"its pixels are wider than 8 bits, as `{opened.mode}` says", None
        return None, _resized(opened.convert("L" if how.channels == "gray" else "RGB"), how)


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
