"""Bundles of language models in folders: a plan each in its own, and what both share beside.

Plans, their common weights and metadata lie under names with their hash, and the manifest that
names them is written last: a folder holds the old bundle until it holds the new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nacre.base.digits import is_digits
from nacre.base.files import HASH_DIGITS, FileSet, file_set, is_stored_name_of, make_folder
from nacre.base.source import Unreadable, read_source
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.storage.checked_bundles import CheckedBundles
from nacre.compile.storage.folder import load as load_plan
from nacre.compile.storage.folder import save as save_plan
from nacre.compile.storage.names import SHARED
from nacre.compile.storage.shared import OpenFiles, SharedConstants, tensors_in_all
from nacre.core.tensor_file import tensor_file_parts
from nacre.llm.bundle.sizes import sizes_of
from nacre.llm.encoder_decoder.config import EncoderDecoderConfig
from nacre.llm.encoder_decoder.encoder import cross_names, cross_shape
from nacre.llm.gguf.file import GgufFile, read_gguf
from nacre.llm.gguf.writing import metadata_bytes
from nacre.llm.model.cache import CacheSizes, cache_names, cache_shape, row_name
from nacre.llm.model.problems import refusal
from nacre.llm.model.step import LOGITS, TOKENS, require_sizes
from nacre.llm.rules.model import LLM08

MANIFEST, HEAD, PREFILL, DECODE = "llm.json", "model.gguf", "prefill", "decode"
VERIFY, BATCHED, ENCODER = "verify", "batched", "encoder"
_STEPS = (VERIFY, BATCHED)
_OPTIONAL = (*_STEPS, ENCODER)
_PART = re.compile(rf"(?:prefill|decode|verify|batched|encoder)\.[0-9a-f]{{{HASH_DIGITS}}}")
_HEAD_PART = re.compile(rf"model\.[0-9a-f]{{{HASH_DIGITS}}}\.gguf")
_FORMAT = 2
_MOST_BYTES = 1 << 16
_MOST_DIGITS = 10


@dataclass(frozen=True, eq=False)
class StoredBundle:
    """What a folder holds."""

    prefill: Bundle
    decode: Bundle
    context: int
    chunk: int
    head: GgufFile
    shorter: Mapping[int, Bundle]  # as `decode`, by their rows
    optional: Mapping[str, Bundle]  # `verify`, `batched` and `encoder`, where they are there


@dataclass(frozen=True)
class _Manifest:
    """What the manifest says: sizes, and the names of what lies beside it."""

    context: int
    chunk: int
    head: str
    decode: str
    prefill: str  # the same as `decode` where chunks are of one token
    shorter: Mapping[int, str]
    optional: Mapping[str, str]

    @property
    def names(self) -> frozenset[str]:
        more = (*self.shorter.values(), *self.optional.values())
        return frozenset({self.head, self.decode, self.prefill, *more})


def save_parts(bundle: StoredBundle, folder: Path, checked: CheckedBundles | None = None) -> None:
    """Write it: readers find the bundle that was there before, or the new one."""
    require_free(folder)
    decodes = [bundle.decode, *bundle.shorter.values()]
    prefills = [bundle.prefill] if bundle.chunk > 1 else []
    with make_folder(folder), file_set(folder / MANIFEST) as files:
        steps = [plan for kind, plan in bundle.optional.items() if kind in _STEPS]
        shared = _add_shared(files, [*decodes, *prefills, *steps])
        plans = {_plan_name(DECODE, plan, shared): plan for plan in decodes}
        plans |= {_plan_name(PREFILL, plan, shared): plan for plan in prefills}
        optional = {kind: _plan_name(kind, plan, shared) for kind, plan in bundle.optional.items()}
        all_plans = {**plans, **{name: bundle.optional[kind] for kind, name in optional.items()}}
        with _plan_folders(folder, all_plans, shared, checked):
            head = files.add(HEAD, [metadata_bytes(bundle.head.metadata)])
            decode, *others = plans
            prefill = others.pop() if prefills else decode
            shorter = dict(zip(bundle.shorter, others, strict=True))
            made = _Manifest(
                bundle.context, bundle.chunk, head.stored, decode, prefill, shorter, optional
            )
            files.commit([_manifest_bytes(made)], old=_data_files(folder))
    _remove_others(folder, made)


def require_free(folder: Path) -> None:
    """InputError where a folder holds something else than such a bundle."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MANIFEST).is_file():
        message = "the folder has other files in it"
        raise refusal(LLM08, str(folder), message, "name a folder that is empty or not there")


def _add_shared(files: FileSet, plans: Sequence[Bundle]) -> SharedConstants | None:
    """What all plans have: the weights above all."""
    tensors = tensors_in_all([plan.legal for plan in plans]) if len(plans) > 1 else {}
    if not tensors:
        return None
    return SharedConstants(files.add(SHARED, tensor_file_parts(tensors)), frozenset(tensors))


def _plan_name(kind: str, plan: Bundle, shared: SharedConstants | None) -> str:
    """The name of its folder, with the hash of what is computed by which weights from where."""
    digest = hashlib.sha256(plan.program.encode())
    digest.update(plan.weights)
    digest.update(shared.file.sha256.encode() if shared is not None else b"")
    return f"{kind}.{digest.hexdigest()[:HASH_DIGITS]}"


@contextlib.contextmanager
def _plan_folders(
    folder: Path,
    plans: Mapping[str, Bundle],
    shared: SharedConstants | None,
    checked: CheckedBundles | None,
) -> Iterator[None]:
    """Plans in folders of their names; those that are new go where the rest fails."""
    new = [folder / name for name in plans if not (folder / name).exists()]
    try:
        for name, plan in plans.items():
            save_plan(plan, folder / name, reference=False, shared=shared, checked=checked)
        yield
    except BaseException:
        named = _names_in_place(folder)
        for path in new:
            if path.name not in named:
                shutil.rmtree(path, ignore_errors=True)
        raise


def _names_in_place(folder: Path) -> frozenset[str]:
    """What the manifest that is there names, if there is a sound one."""
    try:
        return _read_manifest(folder).names
    except Exception:  # none, or a stranger's: then nothing is named
        return frozenset()


def _data_files(folder: Path) -> list[str]:
    """Metadata and common weights that are there, of this bundle or of one before."""
    names = [path.name for path in folder.iterdir()]
    return [n for n in names if _HEAD_PART.fullmatch(n) or is_stored_name_of(n, SHARED)]


def _remove_others(folder: Path, made: _Manifest) -> None:
    """Remove plans of bundles that were there before, or of writes that were cut off."""
    for path in folder.iterdir():
        if _PART.fullmatch(path.name) and path.name not in made.names:
            shutil.rmtree(path, ignore_errors=True)


def _manifest_bytes(made: _Manifest) -> bytes:
    content = {
        "format": _FORMAT,
        "context": made.context,
        "chunk": made.chunk,
        "head": made.head,
        "decode": made.decode,
        "prefill": made.prefill,
        "shorter": {str(rows): name for rows, name in made.shorter.items()},
        **made.optional,
    }
    return json.dumps(content, indent=2).encode() + b"\n"


def load_parts(folder: Path, checked: CheckedBundles | None = None) -> StoredBundle:
    """Read it; every part must fit the others."""
    name = str(folder)
    manifest = _read_manifest(folder)
    head = read_gguf(folder / manifest.head)
    config = sizes_of(head)
    require_sizes(config, name, manifest.context, manifest.chunk)
    above = OpenFiles(folder)
    has_prefill = manifest.chunk > 1
    prefills = [manifest.prefill] if has_prefill else []
    optional_parts = manifest.optional.values()
    parts = (manifest.decode, *prefills, *manifest.shorter.values(), *optional_parts)
    read = {part: Bundle.of(load_plan(folder / part, above, checked)) for part in parts}
    decode = read[manifest.decode]
    prefill = read[manifest.prefill] if has_prefill else decode
    shorter = {rows: read[part] for rows, part in manifest.shorter.items()}
    _require_plan(decode, config, manifest.context, 1, name)
    _require_plan(prefill, config, manifest.context, manifest.chunk, name)
    for rows, plan in shorter.items():
        _require_plan(plan, config, rows, 1, name)
    optional = {kind: read[part] for kind, part in manifest.optional.items()}
    _require_encoder(optional.get(ENCODER), config, name)
    for kind, plan in optional.items():
        if kind == ENCODER:
            continue
        _require_plan(plan, config, manifest.context, max(2, tokens_of(plan)), name, kind)
    return StoredBundle(prefill, decode, manifest.context, manifest.chunk, head, shorter, optional)


def tokens_of(plan: Bundle) -> int:
    """How many tokens a plan takes."""
    type_ = plan.source.input_types.get(TOKENS)
    return 0 if type_ is None else type_.shape[0]


def _read_manifest(folder: Path) -> _Manifest:
    source = read_source(folder / MANIFEST, limit=_MOST_BYTES)
    if isinstance(source, Unreadable):
        raise refusal(LLM08, str(folder), f"`{MANIFEST}` {source.reason}")
    try:
        parsed = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        raise refusal(LLM08, str(folder), f"`{MANIFEST}` is no JSON: {error}") from None
    if not isinstance(parsed, dict) or parsed.get("format") != _FORMAT:
        raise refusal(LLM08, str(folder), f"`{MANIFEST}` is not of format {_FORMAT}")
    context, chunk = parsed.get("context"), parsed.get("chunk")
    if type(context) is not int or type(chunk) is not int:
        raise refusal(LLM08, str(folder), f"`{MANIFEST}` has no numbers `context` and `chunk`")
    names = [parsed.get(key) for key in ("head", "decode", "prefill")]
    for name, form in zip(names, (_HEAD_PART, _PART, _PART), strict=True):
        if not isinstance(name, str) or form.fullmatch(name) is None:
            message = f"`{MANIFEST}` lacks the names of what lies beside it, with their hashes"
            raise refusal(LLM08, str(folder), message)
    head, decode, prefill = map(str, names)
    shorter = _read_shorter(parsed, context, folder)
    optional = {kind: str(parsed[kind]) for kind in _OPTIONAL if kind in parsed}
    if not all(_PART.fullmatch(part) for part in optional.values()):
        message = f"`{MANIFEST}` lacks the names of what lies beside it, with their hashes"
        raise refusal(LLM08, str(folder), message)
    return _Manifest(context, chunk, head, decode, prefill, shorter, optional)


def _read_shorter(parsed: Mapping[str, object], context: int, folder: Path) -> dict[int, str]:
    """Plans of fewer rows, the least first."""
    given = parsed.get("shorter", {})
    found: dict[int, str] = {}
    for rows, name in given.items() if isinstance(given, dict) else ():
        is_size = is_digits(rows) and len(rows) < _MOST_DIGITS and 0 < int(rows) < context
        if is_size and isinstance(name, str) and _PART.fullmatch(name):
            found[int(rows)] = name
    if not isinstance(given, dict) or len(found) < len(given):
        message = f"`{MANIFEST}` names plans of fewer rows that cannot be"
        raise refusal(LLM08, str(folder), message)
    return dict(sorted(found.items()))


def _require_plan(
    plan: Bundle, config: CacheSizes, context: int, size: int, name: str, kind: str = ""
) -> None:
    """A plan's ports are those of a step of this model."""
    caches = cache_names(config)
    types, texts = plan.source.input_types, size if kind == BATCHED else 1
    logits = size if kind in _STEPS else 1
    shapes = {cache: cache_shape(config, cache, context, texts) for cache in caches}
    if isinstance(config, EncoderDecoderConfig):
        shapes |= {cross: cross_shape(config, cross) for cross in cross_names(config)}
    outputs = {port.name: tuple(port.shape) for port in plan.manifest.outputs}
    is_fit = (
        tuple(outputs) == (LOGITS, *map(row_name, caches))
        and all(port in types and types[port].shape == shapes[port] for port in shapes)
        and TOKENS in types
        and types[TOKENS].shape == (size,)
        and outputs[LOGITS][0] == logits
    )
    if not is_fit:
        message = f"a plan is none of {size:,} tokens at a context of {context:,} of this model"
        raise refusal(LLM08, name, message)


def _require_encoder(plan: Bundle | None, config: CacheSizes, name: str) -> None:
    """A bundle has an encoder where its model has one, which gives what steps take."""
    is_there, is_wanted = plan is not None, isinstance(config, EncoderDecoderConfig)
    is_fit = is_there == is_wanted
    if plan is not None and isinstance(config, EncoderDecoderConfig):
        outputs = {port.name: tuple(port.shape) for port in plan.manifest.outputs}
        is_fit = outputs == {cross: cross_shape(config, cross) for cross in cross_names(config)}
    if not is_fit:
        raise refusal(LLM08, name, "the plan of the encoder is not that of this model")


def is_llm_bundle(folder: Path) -> bool:
    """Whether a folder has the manifest of such a bundle."""
    try:
        return (folder / MANIFEST).is_file()
    except (OSError, ValueError):
        return False
