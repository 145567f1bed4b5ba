"""DEV and INH: rules that look at a whole device configuration; its figures stand apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.excerpt import backquote
from nacre.base.fixes import removal_fix, respelling_fix
from nacre.base.rules import rule
from nacre.base.suggest import did_you_mean
from nacre.nem.checks.facts import DeviceFacts
from nacre.nem.checks.rules.devices.figures import unit_counts
from nacre.nem.model.families import must_instances
from nacre.nem.spec.figures import CHARACTERISED
from nacre.nem.spec.limits import SPEC_VERSIONS
from nacre.nem.spec.units import DEVICE_UNITS, ENGINE_UNITS
from nacre.nem.syntax.ast import VariantBlock, VariantRef
from nacre.nem.syntax.printer import variant_text

_SCHEMA = "Device Configuration / Schema Rules"
_GRAMMAR = "Formal Language Definition / Device Configuration Grammar"


@rule("DEV01", "spec-version-missing", f"{_SCHEMA} 1")
def spec_version_missing(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A device that extends no other has no `spec_version`.

    Bad (-) and good (+):

        - device d {
        -     opcode.mandatory { cast.default }
        + include "nem_baseline_1.0.nem"
        + device d extends nem_baseline_1_0 {
          }
    """
    node = facts.node
    if node.extends is None and node.spec_version is None:
        yield spec_version_missing.at(
            facts.span(node.name),
            f"device `{node.name.name}` has no `spec_version`",
            help=f'add `spec_version = "{SPEC_VERSIONS[0]}"`, or extend a device that has one',
        )


@rule("DEV02", "mandatory-block-missing", _GRAMMAR)
def mandatory_block_missing(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A device that extends no other has no `opcode.mandatory` block.

    Bad (-) and good (+):

        - device d {
        -     spec_version = "NEM-1.0"
        + include "nem_baseline_1.0.nem"
        + device d extends nem_baseline_1_0 {
          }
    """
    node = facts.node
    if node.extends is None and node.mandatory is None:
        yield mandatory_block_missing.at(
            facts.span(node.name),
            f"device `{node.name.name}` has no `opcode.mandatory` block",
            help="extend `nem_baseline_1_0`, which brings the mandatory variants",
        )


@rule("DEV03", "unknown-spec-version", f"{_SCHEMA} 1")
def unknown_spec_version(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """`spec_version` names no known revision of the language.

    Bad (-) and good (+):

        - device d {
        -     spec_version = "banana"
        -     opcode.mandatory { cast.default }
        + include "nem_baseline_1.0.nem"
        + device d extends nem_baseline_1_0 {
          }
    """
    version = facts.node.spec_version
    if facts.node.extends is not None or version is None:
        return
    if version.value not in SPEC_VERSIONS:
        known = " and ".join(f'`"{v}"`' for v in SPEC_VERSIONS)
        message = f"unknown spec version {backquote(version.value)}"
        yield unknown_spec_version.at(facts.span(version), message, help=f"known are {known}")


_PROMOTED = "the variant is mandatory from here on; if that is not meant, leave the entry out"


@rule(
    "DEV04", "variant-listed-twice", f"{_SCHEMA} 4", severity="warning", fix="takes the entry out"
)
def variant_listed_twice(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A variant stands both in `opcode.mandatory` and `opcode.extended`, or twice in one of them.

    It counts as mandatory. What a parent lists is inherited: a child need not list it again. A
    child that makes a parent's extended variant mandatory promotes it.

    Bad (-) and good (+):

          include "npm_lite.nem"
          device d extends npm_lite {
        -     opcode.extended { cast.default }
        +     opcode.extended { eltwise<f32>.default }
          }
    """
    parent = facts.device.parent
    seen: dict[str, str] = {}
    if parent is not None:
        seen |= dict.fromkeys(parent.extended, "extended in the parent device")
        seen |= dict.fromkeys(parent.mandatory, "mandatory in the parent device")
    for block, how in ((facts.node.mandatory, "mandatory"), (facts.node.extended, "extended")):
        for ref in _variants(block):
            id_ = variant_text(ref)
            if id_ in seen:
                finding = _redundant(facts, ref, id_, seen[id_])
                if how == "mandatory" and seen[id_].startswith("extended"):
                    # Without the entry it would not be mandatory: that is not for us to choose.
                    finding = replace(finding, help=_PROMOTED, fix=None)
                yield finding
            seen[id_] = f"listed as {how}"


def _redundant(facts: DeviceFacts, ref: VariantRef, id_: str, before: str) -> Diagnostic:
    is_inherited = before.endswith("parent device")
    help_ = "leave it out: it is inherited" if is_inherited else "leave one of the two entries out"
    message = f"variant `{id_}` is already {before}"
    span = facts.span(ref)
    return variant_listed_twice.at(span, message, help=help_, fix=removal_fix(span))


def _variants(block: VariantBlock | None) -> tuple[VariantRef, ...]:
    return block.variants if block is not None else ()


@rule("DEV12", "must-variants-missing", f"{_SCHEMA} 7")
def must_variants_missing(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A device does not list all variants that every device must have.

    Bad (-) and good (+):

        - device d {
        -     spec_version = "NEM-1.0"
        -     opcode.mandatory { cast.default }
        + include "nem_baseline_1.0.nem"
        + device d extends nem_baseline_1_0 {
          }
    """
    device, node = facts.device, facts.node
    if node.extends is not None or not device.mandatory:
        return  # a derived device has what its parent has, and the parent is checked itself
    if device.spec_version not in SPEC_VERSIONS:
        return  # which variants are mandatory is for the revision to say
    missing = sorted(must_instances() - set(device.mandatory))
    known = {id_ for family in facts.families.values() for id_ in family.instances}
    if len(missing) > len(set(device.mandatory) - known):  # else they are there, misspelt
        listed = ", ".join(f"`{id_}`" for id_ in missing[:4])
        more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        yield must_variants_missing.at(
            facts.span(node.name),
            f"device `{device.name}` lacks {len(missing)} mandatory variants: {listed}{more}",
            help="extend `nem_baseline_1_0`, which lists them",
        )


@rule("DEV13", "no-mandatory-variants", "Formal Language Definition / Device Inheritance 8")
def no_mandatory_variants(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A device's `opcode.mandatory` set is empty.

    Bad (-) and good (+):

        - device d {
        -     spec_version = "NEM-1.0"
        -     opcode.mandatory { }
        + include "nem_baseline_1.0.nem"
        + device d extends nem_baseline_1_0 {
          }
    """
    node = facts.node
    if node.extends is None and node.mandatory is not None and not node.mandatory.variants:
        yield no_mandatory_variants.at(
            facts.span(node.mandatory),
            f"`opcode.mandatory` of device `{node.name.name}` is empty",
            help="extend `nem_baseline_1_0`, which lists the mandatory variants",
        )


@rule(
    "DEV14",
    "unknown-variant",
    f"{_SCHEMA} 2 and 3",
    fix="writes the name that was meant, where it can be one only",
)
def unknown_variant(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A device lists a variant that no family defines.

    The family, the types and the variant must all be right: `gemm.float<f32>.with_bias` stands
    in no conformance list.

    Bad (-) and good (+):

          include "npm_lite.nem"
          device d extends npm_lite {
        -     opcode.extended { gemm.float<f32>.with_bias }
        +     opcode.extended { gemm.float<f32>.no_bias }
          }
    """
    for ref in (*_variants(facts.node.mandatory), *_variants(facts.node.extended)):
        family = facts.families.get(ref.family)
        id_ = variant_text(ref)
        if family is None and facts.may_be_elsewhere(ref.family):
            continue
        fix, span = None, facts.span(ref)
        if family is None:
            message = f"no type family {backquote(ref.family)}"
            help_ = did_you_mean(ref.family, facts.families)
            part = facts.source.span(ref.start, ref.start + len(ref.family))
            fix = respelling_fix(part, ref.family, facts.families)
        elif ref.variant not in family.variants:
            message = f"type family `{family.name}` has no variant {backquote(ref.variant)}"
            help_ = did_you_mean(ref.variant, family.variants)
            part = facts.source.span(ref.end - len(ref.variant), ref.end)
            fix = respelling_fix(part, ref.variant, family.variants)
        elif len(ref.types or ()) != family.parameter_count or id_ in family.instances:
            continue
        elif not {t.name for t in ref.types or ()} <= ELEMENT_TYPES.keys():
            continue  # which has been reported
        else:
            message = f"`{id_}` is in no conformance list of type family `{family.name}`"
            sound = [i.id for i in family.instances.values() if family.admits(i)]
            help_ = f"it has {', '.join(f'`{name}`' for name in sound) or 'none that is sound'}"
        related = (Related(family.span, "the family"),) if family is not None else ()
        yield unknown_variant.at(span, message, related=related, help=help_, fix=fix)


@rule("DEV15", "type-parameter-count", "Formal Language Definition / Type Family Grammar")
def type_parameter_count(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A variant is listed with another number of types than its family has parameters.

    Bad (-) and good (+):

          include "npm_lite.nem"
          device d extends npm_lite {
        -     opcode.extended { quantize<f32>.default }
        +     opcode.extended { quantize<f32, i8>.default }
          }
    """
    for ref in (*_variants(facts.node.mandatory), *_variants(facts.node.extended)):
        family = facts.families.get(ref.family)
        if family is None or ref.variant not in family.variants:
            continue
        given, wanted = len(ref.types or ()), family.parameter_count
        if given != wanted:
            yield type_parameter_count.at(
                facts.span(ref),
                f"type family `{family.name}` takes {wanted} types, found {given}",
                related=(Related(family.span, "the family"),),
            )


@rule(
    "DEV16",
    "unit-out-of-place",
    f"{_GRAMMAR} (Device-Level Units)",
    fix="writes the word that was meant, where it can be one only",
)
def unit_out_of_place(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A unit stands in the wrong block, or there is no unit of that name.

    `per_engine` takes NMU, CSTL, DMA, VPU and SEQ; `device_units` takes sDMA and WDM.

    Bad (-) and good (+):

          include "nem_baseline_1.0.nem"
          device d extends nem_baseline_1_0 {
              topology {
                  num_engines = 1
                  l2_size_bytes = 1048576
        -         per_engine { NMU = 1 sDMA = 1 l1_size_bytes = 524288 }
        +         device_units { sDMA = 1 }
        +         per_engine { NMU = 1 l1_size_bytes = 524288 }
              }
          }
    """
    per_engine, device_units = unit_counts(facts)
    groups = facts.node.characteristics.groups if facts.node.characteristics is not None else ()
    blocks = (
        ([u.unit for u in per_engine], ENGINE_UNITS, "`per_engine`"),
        ([u.unit for u in device_units], DEVICE_UNITS, "`device_units`"),
        ([g.unit for g in groups], CHARACTERISED, "`unit_characteristics`"),
    )
    for units, allowed, where in blocks:
        for unit in units:
            if unit.name not in allowed:
                message = f"{where} does not take {backquote(unit.name)}"
                listed = ", ".join(allowed)
                keys = (*allowed, "l1_size_bytes") if allowed is ENGINE_UNITS else allowed
                help_ = did_you_mean(unit.name, keys) or f"it takes {listed}"
                span = facts.span(unit)
                fix = respelling_fix(span, unit.name, keys)
                yield unit_out_of_place.at(span, message, help=help_, fix=fix)


@rule(
    "INH01",
    "spec-version-in-derived-device",
    "Formal Language Definition / Device Inheritance 2",
    fix="takes the entry out",
)
def spec_version_in_derived_device(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A device that extends another gives a `spec_version`; it is inherited.

    Bad (-) and good (+):

          include "npm_lite.nem"
          device d extends npm_lite {
        -     spec_version = "NEM-1.0"
          }
    """
    node = facts.node
    if node.extends is not None and node.spec_version is not None:
        span = facts.source.span(node.spec_start, node.spec_version.end)
        yield spec_version_in_derived_device.at(
            span,
            f"device `{node.name.name}` inherits its `spec_version` from `{node.extends.name}`",
            help="take it out",
            fix=removal_fix(span),
        )
