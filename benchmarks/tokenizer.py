"""Tokenizers beside the library `tokenizers`, which is written in Rust: ids of text, in one thread.

The text is what a machine with Python has: sources of its library, the documents of this project
and of installed packages, and words of fourteen scripts. Every family has a vocabulary that is
trained on a part of it. Both encode the same text in one run; `with places` also says where every
id comes from, which the library always does. Then hostile texts of n and of 2n characters: a ratio
of 2 is linear. For these the collector of Python's cycles is off, as in `timeit`: it passes over
all that is alive now and then, which is no part of how time grows. Speed is measured with it.

    python benchmarks/tokenizer.py                 10 MB, every family
    python benchmarks/tokenizer.py --megabytes 1 bert
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tokenizers
from tokenizers import pre_tokenizers, trainers

from nacre.nac import tisa
from tests.nac.tisa.corpus import CORPUS
from tests.nac.tisa.families import FAMILIES

CHOSEN = ("gpt2", "llama 3", "qwen 2", "bert", "t5", "xlm-r", "llama 2", "gemma")
VOCABULARY = 8000
TRAINED_ON = 1 << 20  # characters
OTHER_SCRIPTS = 0.1  # of the text
LEAST_RATIO = 0.1
MOST_GROWTH = 2.6  # of the time for a text of twice the length
HOSTILE: dict[str, Callable[[int], str]] = {
    "one letter": lambda n: "a" * n,
    "spaces": lambda n: " " * n,
    "merges in turn": lambda n: "ab" * (n // 2),
    "marks": lambda n: "e" + "\u0301\u0323" * (n // 2),
    "spaces, letter": lambda n: (" " * 999 + "x") * (n // 1000),
    "ideographs": lambda n: "\u4e2d" * n,
    "line ends": lambda n: "\r\n" * (n // 2),
}


def _documents() -> Iterator[str]:
    paths = sysconfig.get_paths()
    root = Path(__file__).resolve().parent.parent
    library, packages = Path(paths["stdlib"]), Path(paths["purelib"])
    for folder, pattern in (
        (root / "docs", "*.md"), (library, "*.py"), (packages, "*/*.md"), (packages, "*/METADATA"),
        (library, "*/*.py"), (packages, "*/*.py"),
    ):  # fmt: skip
        for path in sorted(folder.glob(pattern)):
            yield path.read_text("utf-8", errors="ignore")


def _text(size: int) -> str:
    """So many bytes, with lines of other scripts among those of the documents."""
    draw = random.Random(5)
    words = [word for line in CORPUS[2:16] for word in line.split()]
    parts: list[str] = []
    length = 0
    for document in _documents():
        count = int(len(document) * OTHER_SCRIPTS / 8)
        for part in (document, " ".join(draw.choices(words, k=count)) + "\n"):
            parts.append(part)
            length += len(part.encode("utf-8"))
        if length >= size:
            break
    return "".join(parts).encode("utf-8")[:size].decode("utf-8", errors="ignore")


def _trained(name: str, text: str) -> Any:  # noqa: ANN401 - the library has no types
    """The tokenizer of a family with a vocabulary of that text."""
    whole = FAMILIES[name]()
    made = tokenizers.Tokenizer.from_str(json.dumps(whole))
    kind = whole["model"]["type"]
    specials = [token["content"] for token in whole["added_tokens"]]
    given = {"vocab_size": VOCABULARY, "show_progress": False}
    if kind == "Unigram":
        trainer = trainers.UnigramTrainer(special_tokens=specials, unk_token="<unk>", **given)
    elif kind == "WordPiece":
        trainer = trainers.WordPieceTrainer(special_tokens=specials, **given)
    elif whole["model"].get("byte_fallback"):
        specials += [f"<0x{byte:02X}>" for byte in range(0x100)]
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.BpeTrainer(special_tokens=specials, **given)
    else:
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(special_tokens=specials, initial_alphabet=alphabet, **given)
    made.train_from_iterator(text.splitlines(keepends=True), trainer)
    whole["model"] |= json.loads(made.to_str())["model"]
    return tokenizers.Tokenizer.from_str(json.dumps(whole))


def _sample(text: str) -> str:
    """Pieces from all over a text."""
    step = max(1, len(text) * 1000 // TRAINED_ON)
    return "".join(text[at : at + 1000] for at in range(0, len(text), step))


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def _compare(name: str, text: str) -> tuple[Any, float]:
    library = _trained(name, _sample(text))
    program = tisa.load(tisa.compile_tokenizer(library.to_str()))
    ids: dict[str, list[int]] = {}
    theirs = _seconds(lambda: ids.update(theirs=library.encode(text).ids))
    ours = _seconds(lambda: ids.update(ours=program.encode(text)))
    if ids["ours"] != ids["theirs"]:
        raise SystemExit(f"{name}: the ids differ")
    placed = _seconds(lambda: program.encode_whole(text))
    size = len(text.encode("utf-8")) / 1e6
    print(
        f"{name:12}{size / theirs:>12.2f}{size / ours:>12.2f}{theirs / ours:>9.2f}"
        f"{theirs / placed:>13.2f}",
        flush=True,
    )
    return program, theirs / placed


def _growth(program: Any, make: Callable[[int], str], size: int) -> tuple[float, float]:  # noqa: ANN401
    """Seconds for a hostile text, and how many times as many for one of twice the length."""
    texts = (make(size), make(2 * size))
    gc.disable()
    try:
        first, second = (
            min(_seconds(partial(program.encode, text)) for _ in range(2)) for text in texts
        )
    finally:
        gc.enable()
    return second, second / max(first, 1e-3)


def main() -> None:
    """Speed, then growth; ends with an error where either is worse than it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=CHOSEN)
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--hostile", type=int, default=500_000, help="characters, then twice these")
    options = parser.parse_args()
    text = _text(int(options.megabytes * 1e6))
    print(f"{len(text):,} characters; MB/s of processor time, and ours over theirs")
    print(f"{'':12}{'tokenizers':>12}{'nacre':>12}{'ratio':>9}{'with places':>13}")
    programs: dict[str, Any] = {}
    worst = 1.0
    for name in options.families:
        programs[name], ratio = _compare(name, text)
        worst = min(worst, ratio)
    print(f"\nhostile texts of {2 * options.hostile:,} characters: seconds, times those of half")
    steepest = 0.0
    for name, program in programs.items():
        shown: list[str] = []
        for title, make in HOSTILE.items():
            seconds, times = _growth(program, make, options.hostile)
            steepest = max(steepest, times)
            shown.append(f"{title} {seconds:.2f} ({times:.1f})")
        print(f"{name:12}{', '.join(shown)}", flush=True)
    if worst < LEAST_RATIO or steepest > MOST_GROWTH:
        raise SystemExit(f"the worst ratio is {worst:.2f}, the steepest growth {steepest:.1f}")


if __name__ == "__main__":
    main()
