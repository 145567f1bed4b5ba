"""DEV and INH: what the reader says of device configurations, and what they promise.

The rules that look at a whole device are functions in `nem/checks/rules/devices.py`.
"""

from nacre.base.rules import declare

_SCHEMA = "Device Configuration / Schema Rules"
_GRAMMAR = "Formal Language Definition / Device Configuration Grammar"
_INHERIT = "Formal Language Definition / Device Inheritance"

DEV07 = declare(
    "DEV07",
    "device-units-may-be-absent",
    f"{_SCHEMA} 5",
    """
    A count of 0 in `device_units` is allowed and means that the device lacks the unit.

    No diagnostic carries this code.
    """,
    behaviour=True,
)
DEV11 = declare(
    "DEV11",
    "abstract-target",
    f"{_SCHEMA} 5",
    """
    The target device has no topology.

    Devices without a topology are there to be extended; `nem_baseline_1_0` is one.

    Bad (-) and good (+):

        - include "nem_baseline_1.0.nem"
        - device nem_baseline_1_0
        + include "npm_lite.nem"
        + device npm_lite
          program p:
    """,
)
DEV17 = declare(
    "DEV17",
    "device-entry-twice",
    _GRAMMAR,
    """
    A block, unit or characteristic is given twice in one block of a device.

    Bad (-) and good (+):

          include "npm_lite.nem"
          device d extends npm_lite {
              unit_characteristics {
                  NMU {
        -             int8_macs = 4096
                      int8_macs = 8192
                  }
              }
          }
    """,
    fix="takes the second entry out where both say the same",
)
DEV18 = declare(
    "DEV18",
    "unknown-characteristics-kept",
    f"{_GRAMMAR} (Unit Characteristics)",
    """
    Characteristics that nacre does not know are allowed and kept.

    No diagnostic carries this code.
    """,
    behaviour=True,
)
DEV19 = declare(
    "DEV19",
    "characteristic-not-an-integer",
    _GRAMMAR,
    """
    A characteristic's value is not an integer literal.

    Bad (-) and good (+):

          include "npm_lite.nem"
          device d extends npm_lite {
        -     unit_characteristics { NMU { int8_macs = "x" } }
        +     unit_characteristics { NMU { int8_macs = 4096 } }
          }
    """,
)
DEV20 = declare(
    "DEV20",
    "token-limit-respected",
    f"{_GRAMMAR} (Unit Characteristics)",
    """
    `SEQ.max_active_tokens` bounds the tokens that live on an engine at once.

    No diagnostic carries this code; TOK07 reports programs that may exceed the bound.
    """,
    behaviour=True,
)
DEV21 = declare(
    "DEV21",
    "no-device-units",
    f"{_GRAMMAR} (Device-Level Units)",
    """
    A device without a `device_units` block has no device-level units: no sDMA, no WDM.

    No diagnostic carries this code.
    """,
    behaviour=True,
)
INH02 = declare(
    "INH02",
    "topology-replaced",
    f"{_INHERIT} 3",
    """
    A device's topology replaces its parent's as a whole.

    A child that gives a topology without `device_units` has no sDMA, whatever its parent had.
    No diagnostic carries this code.
    """,
    behaviour=True,
)
INH04 = declare(
    "INH04",
    "characteristics-merged",
    f"{_INHERIT} 4",
    """
    Characteristics of parent and child are merged key by key; the child's values win.

    No diagnostic carries this code.
    """,
    behaviour=True,
)
INH05 = declare(
    "INH05",
    "mandatory-united",
    f"{_INHERIT} 5",
    """
    `opcode.mandatory` is the union of the parent's and the child's variants.

    No diagnostic carries this code.
    """,
    behaviour=True,
)
INH06 = declare(
    "INH06",
    "extended-united",
    f"{_INHERIT} 6",
    """
    `opcode.extended` is the union of the parent's and the child's variants.

    No diagnostic carries this code.
    """,
    behaviour=True,
)
INH03 = declare(
    "INH03",
    "derived-target-without-topology",
    f"{_INHERIT} 3",
    """
    The target device extends an abstract device and brings no topology of its own.

    Bad (-) and good (+):

        - include "nem_baseline_1.0.nem"
        - device d extends nem_baseline_1_0 {
        + include "npm_lite.nem"
        + device d extends npm_lite {
          }
          program p:
    """,
)
INH07 = declare(
    "INH07",
    "unknown-parent-device",
    f"{_INHERIT} 7",
    """
    A device extends one that is not defined above it or in an included file.

    Bad (-) and good (+):

        + include "npm_lite.nem"
          device d extends npm_lite {
          }
    """,
    fix=(
        "adds the include of a built-in device; else writes the name that was "
        "meant, where it can be one only"
    ),
)
INH08 = declare(
    "INH08",
    "several-parents",
    f"{_INHERIT} 7",
    """
    A device extends more than one device.

    Bad (-) and good (+):

          include "npm_lite.nem"
        - include "npm_mid.nem"
        - device d extends npm_lite, npm_mid {
        + device d extends npm_lite {
          }
    """,
)
INH09 = declare(
    "INH09",
    "device-extends-itself",
    f"{_INHERIT} 7",
    """
    A device extends itself, directly or through others.

    Bad (-) and good (+):

        - device d extends d {
        + include "npm_lite.nem"
        + device d extends npm_lite {
          }
    """,
)
INH10 = declare(
    "INH10",
    "schema-holds-after-inheritance",
    f"{_INHERIT} 8",
    """
    The schema rules hold for the device with everything that it inherits.

    No diagnostic carries this code: what is wrong gets the DEV code. A child that makes a
    parent's extended variant mandatory gets the warning DEV04, and the variant is mandatory.
    """,
    behaviour=True,
)
INH11 = declare(
    "INH11",
    "inheritance-chains",
    f"{_INHERIT} 7",
    """
    A device may extend a device that extends another; everything is inherited along the chain.

    No diagnostic carries this code.
    """,
    behaviour=True,
)
