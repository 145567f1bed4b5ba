"""Files that were written once and stay readable: `python -m tests.tcb.corpus` adds what is new."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from nacre.tcb.binary.encoding import encode
from nacre.tcb.image import Image
from nacre.tcb.text.disassembly import disassemble
from tests.tcb.broken import COPY, counting, with_items
from tests.tcb.samples import sample, sample_with_host_values

CORPUS = Path(__file__).with_name("corpus")
# A name, and the image that is written under it where there is no such file yet.
IMAGES: Mapping[str, Callable[[], Image]] = {
    "everything": sample,
    "one_copy": lambda: with_items(COPY),
    "host_values": sample_with_host_values,
    "periods": lambda: counting(n // 3 * 1500 + n % 3 for n in range(48)),
}


def main() -> None:
    """Write the files that are missing; none is ever written again."""
    for name, build in IMAGES.items():
        path = CORPUS / f"{name}.tcb"
        if not path.exists():
            path.write_bytes(encode(build()))
            path.with_suffix(".tcbs").write_text(disassemble(build()), encoding="utf-8")


if __name__ == "__main__":
    main()
