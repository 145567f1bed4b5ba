"""NAC40, NAC71-NAC72: operations that have no form in Core IR, and kernels for them."""

from nacre.base.rules import declare

_EXECUTION = "NAC / Execution process"
_NAC = "NAC"

NAC40 = declare(
    "NAC40", "operation-unknown", _EXECUTION,
    """
    The program uses an operation that nacre does not know and for which no kernel is registered.
    The file keeps it by its name, with its arguments, and can be looked at, built on and saved
    again: this is a warning of `verify`. A run is refused (NAC71) until somebody registers a
    kernel.
    """, severity="warning", language=_NAC)  # fmt: skip
NAC71 = declare(
    "NAC71", "operation-unregistered", _EXECUTION,
    """
    A program is to be run that uses operations which nacre does not know, and no kernel is
    registered for them: all are listed, each where it is first used, and nothing is computed. A
    kernel is a function of NumPy arrays, registered by `nacre.nac.register_operation(name, kernel)`
    or by an installed package with an entry point of that name in the group `nacre.operations`.
    """, language=_NAC)  # fmt: skip
NAC72 = declare(
    "NAC72", "operation-registration", _EXECUTION,
    """
    A kernel cannot be had or registered: an entry point of the group `nacre.operations` cannot be
    imported or is no function, a name is none or belongs to an operation that nacre computes
    itself.
    """, language=_NAC)  # fmt: skip
