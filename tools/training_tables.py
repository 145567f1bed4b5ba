"""Tables of losses and optimisers, as the code declares them."""

from __future__ import annotations

from msgspec.structs import fields

from nacre.nac.training.losses import LOSSES, Loss
from nacre.nac.training.optimisers import OPTIMISERS
from tools.generated import markdown_table

_SMOOTHS = "; `label_smoothing=` takes that share from the right class, and all classes share it"


def render_losses() -> str:
    """What can be made smaller."""
    rows = ((f"`{name}`", one.targets, _formula(one)) for name, one in LOSSES.items())
    return markdown_table(("loss", "targets", "the mean of"), rows)


def _formula(loss: Loss) -> str:
    return f"`{loss.formula}`{_SMOOTHS if loss.smooths else ''}"


def render_optimisers() -> str:
    """How steps are taken, and the settings of each with what they usually are."""
    rows = []
    for name, kind in OPTIMISERS.items():
        said = (kind.__doc__ or "").splitlines()[0].rstrip(".")
        settings = ", ".join(f"`{one.name}={one.default}`" for one in fields(kind))
        rows.append((f"`{name}`, `nac.{kind.__name__}`", said[:1].lower() + said[1:], settings))
    return markdown_table(("optimiser", "where a step goes", "settings"), rows)
