"""Plans of networks that are made once and kept as text: a fit times them, and never plans."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nacre.compile.bundle.compiled_model import CompiledModel


@dataclass(frozen=True)
class KeptPlan:
    """A plan, and what simpler models have of its network."""

    text: str
    macs: int


def load_or_plan(file: Path, plan: Callable[[], CompiledModel]) -> KeptPlan:
    """The plan in a file; made, and written there, if there is none. Weights are not kept."""
    facts = file.with_suffix(".json")
    if file.is_file() and facts.is_file():
        return KeptPlan(file.read_text(encoding="utf-8"), **json.loads(facts.read_text()))
    print(f"  planning {file.stem}", file=sys.stderr, flush=True)
    bundle = plan()
    found = KeptPlan(bundle.program, bundle.manifest.macs or 0)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(found.text, encoding="utf-8")
    facts.write_text(json.dumps({"macs": found.macs}))
    return found
