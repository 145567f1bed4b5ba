"""Files of every version, kept for ever. `python -m tests.nem.bytecode.corpus` adds to them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from nacre.base.source import Source
from nacre.nem.bytecode.container import VERSION
from nacre.nem.bytecode.library import Library
from nacre.nem.bytecode.packing import content_of, pack, pack_contents

ROOT = Path(__file__).resolve().parents[3]
CORPUS = Path(__file__).parent / "corpus"
DEVICE = """\
include "nem_baseline_1.0.nem"
device small extends nem_baseline_1_0 {
    spec_version = "NEM-1.0"
    topology { num_engines = 1 l2_size_bytes = 4096 * 16
        per_engine { NMU = 1 CSTL = 2 DMA = 2 l1_size_bytes = 65536 } }
}
"""
LOOSE = """\
# loose
program  loose :
buffer X : DDR (align=64, size = 2*(3+4)) # behind
loop i in [0..3] @max_in_flight(2):  t = transfer.async(
    src=region(X, i, 1),   # inside
    dst=region(X, -(i mod 2) + 8, 1)) @debug
endloop
"""


COMPRESSED = """\
include "npm_pro.nem"
device npm_pro
buffer W : DDR (size=4096)
buffer S : L2 (size=4096)
let w = region(W, 0, 264) elem=f16, shape=[16, 32], layout=KN, compressed=palette(bits=2, tables=1)
t = transfer.async(dst=region(S, 0, 1024), src=w)
u = transfer.async(dst=region(S, 1024, 512),
    src=region(W, 2048, 300) elem=i8, shape=[512], layout=C, compressed=sparse)
"""


def files() -> dict[str, bytes]:
    """What the corpus has of the version of today."""
    made = {path.stem: pack(path.read_text()) for path in (ROOT / "examples").glob("*.nem")}
    device, loose = (content_of(Source("f.nem", text)) for text in (DEVICE, LOOSE))
    made |= {"loose": pack(LOOSE), "device": pack(DEVICE), "empty": pack("")}
    made["compressed"] = pack(COMPRESSED)
    made["library"] = pack_contents([("a/loose.nem", True, loose), ("device.nem", False, device)])
    return made


if __name__ == "__main__":
    folder = CORPUS / f"v{VERSION}"
    folder.mkdir(exist_ok=True)
    for name, data in files().items():
        path = folder / f"{name}.nemb"
        if not path.exists():
            path.write_bytes(data)
            library = Library(data, name, None)
            texts = "".join(library.source(member).canonical_text for member in library.entries)
            digest = hashlib.sha256(texts.encode()).hexdigest()
            path.with_suffix(".sha256").write_text(f"{digest}\n")
