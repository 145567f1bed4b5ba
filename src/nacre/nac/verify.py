"""Everything that is wrong with a file, in one go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nacre.base.diagnostics import Diagnostic, InputError, has_errors, in_order
from nacre.base.source import Source
from nacre.nac.checks import plan_and_tokenizer, weights
from nacre.nac.checks.examination import Check
from nacre.nac.checks.file import CHECKS, check_file
from nacre.nac.format.external import External
from nacre.nac.format.file import FileSource
from nacre.nac.format.values import NacFile
from nacre.nac.rules.limits import require_limits

# What a file carries beside its program: it runs without them.
CARRIED: tuple[Check, ...] = (plan_and_tokenizer.plan, plan_and_tokenizer.tokenizer)
# What takes longer than a run should wait for: every byte of the weights is read.
THOROUGH: tuple[Check, ...] = (weights.unchanged,)


def verify(
    path: FileSource,
    *,
    max_bytes: int | None = None,
    max_work: int | None = None,
    memory_limit: int | None = None,
) -> list[Diagnostic]:
    """Every promise of the format that a file breaks, in the order of its bytes.

    For a file that breaks none, and as far as it says the types of its inputs, also what would keep
    a run from its end; the limits are those of `load`. Weights beside the file are read whole: they
    have the hash that the file was written with, which `load` does not ask.
    """
    given = require_limits(max_bytes=max_bytes, max_work=max_work, memory_limit=memory_limit)
    result, external, findings = check_file(path, (*CHECKS, *CARRIED, *THOROUGH))
    if result.file is not None and not has_errors(findings):
        findings += _run_findings(result.file, result.source, external, given)
    return in_order(findings)


def _run_findings(
    file: NacFile,
    source: Source,
    external: External | None,
    given: Mapping[str, Any],
) -> list[Diagnostic]:
    # Imported for a file that is sound: to find one that is not, nobody needs the runtime.
    from nacre.nac.run.memory_plan import dry_run_findings
    from nacre.nac.run.model import model_of
    from nacre.nac.run.opaque import unknown_findings

    try:
        model = model_of(file, source, external)
    except InputError as refused:  # as `load` refuses it
        return list(refused.diagnostics)
    unknown = unknown_findings(model)
    if has_errors(unknown):
        return unknown
    return unknown + dry_run_findings(replace(model, **given))
