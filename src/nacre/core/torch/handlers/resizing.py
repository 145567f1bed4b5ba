"""Other sizes of planes, as ATen has them."""

from __future__ import annotations

from nacre.core.torch.handlers.table import handles
from nacre.core.torch.use import AtenCall
from nacre.core.unsupported import Unsupported

_FORMS = tuple(
    f"{name}.{overload}"
    for name in (
        *(f"upsample_nearest{n}d" for n in (1, 2, 3)),
        *(f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)),
        "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
        "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
    )
    for overload in ("vec", "default")
)  # fmt: skip


@handles(*_FORMS)
def upsample(use: AtenCall) -> int:
    """Another size, by neighbours or by interpolation."""
    name = use.name.split(".")[0]
    x = use.value("input" if "input" in use.names else "self")
    given: dict[str, object] = {"sizes": use.shape, "scales": _scales(use)}
    if "nearest" in name:
        is_exact = "exact" in name
        given["coordinate"] = "half_pixel" if is_exact else "asymmetric"
        # Halves of exact ones go up: floor(x + 1/2), as floor of a coordinate that is not moved.
        given["rounding"] = "round_prefer_ceil" if is_exact else "floor"
        return use.add("Resize", x, mode="nearest", **given)
    is_cubic, is_soft = "cubic" in name, name.endswith("_aa")
    given["mode"] = "cubic" if is_cubic else "linear"
    corners = bool(use.get("align_corners", False))
    if is_soft and corners:
        raise Unsupported("it has `antialias` and `align_corners`", "leave one of them out")
    given["coordinate"] = "align_corners" if corners else "half_pixel"
    if is_soft:
        given |= {"antialias": True, "exclude_outside": True}
        if is_cubic:
            given["cubic_a"] = -0.5
    return use.add("Resize", x, **given)


def _scales(use: AtenCall) -> tuple[float, ...]:
    """The scales that the user gave, which need not be those of the sizes; none: those of these."""
    before, after = use.shape_of(use.names[0]), use.shape
    factors = use.get("scale_factors")
    if factors is None:
        names = ("scales",) if "scales" in use.names else ("scales_d", "scales_h", "scales_w")
        found = [use.get(n) for n in names if n in use.names]
        factors = found if all(f is not None for f in found) else None
    if not factors:
        return ()
    spatial = len(factors)
    exact = [b / a for a, b in zip(before[-spatial:], after[-spatial:], strict=True)]
    given = [float(f) for f in factors]
    if given == exact:
        return ()
    return (*[1.0] * (len(before) - spatial), *given)
