"""Write which cases of the suite of onnx are refused, and why.

usage: python -m tools.generate_onnx_report [--check]
"""

from __future__ import annotations

import sys
from collections import Counter

import onnx

from tests.core.onnx.backend import FOLDER, Case, cases, is_in_scope, outcomes, scope
from tools.generated import write_or_check

REPORT = FOLDER / "refused.txt"


def version_line() -> str:
    """Which version of the suite this is about."""
    return f"# onnx {onnx.__version__}"


def render_report() -> str:
    """The counts, then every case that does not pass."""
    found = outcomes()
    kinds = Counter(outcome.kind for outcome in found.values())
    own = [case for case in cases() if is_in_scope(case)]
    listed = [case for case in cases() if case.operations <= scope()]
    lines = [
        version_line(),
        "# Cases that are refused, with the reason: written by `tools.generate_onnx_report`.",
        "#",
        f"# {len(found)} cases: {kinds['passed']} pass as they are,"
        f" {kinds['bound']} with some inputs bound to values,",
        f"# {kinds['folded']} with all of them: those onnx computes itself, at import."
        f" {kinds['refused']} are refused.",
        "#",
        "# By the names of operations alone, whatever element types and shapes they have:",
        f"# {_rate(listed)}.",
        "# Of those whose inputs and outputs are tensors of the element types of Core IR:",
        f"# {_rate(own)}.",
        "",
    ]
    lines += [
        f"{name}: {outcome.kind}: {outcome.reason}"
        for name, outcome in found.items()
        if not outcome.is_passed
    ]
    return "\n".join(lines) + "\n"


def _rate(some: list[Case]) -> str:
    passed, folded = _passed(some), sum(outcomes()[case.name].kind == "folded" for case in some)
    share = 100 * passed / len(some)
    return f"{passed} of {len(some)} pass ({share:.1f}%), {folded} of them computed by onnx"


def _passed(some: list[Case]) -> int:
    return sum(outcomes()[case.name].is_passed for case in some)


if __name__ == "__main__":
    purpose = "which cases of the suite of onnx are refused"
    sys.exit(write_or_check({REPORT: render_report()}, sys.argv[1:], purpose))
