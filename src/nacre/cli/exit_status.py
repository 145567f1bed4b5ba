"""How verbs end, as numbers."""

from __future__ import annotations

import errno

OK, ERRORS_FOUND, WRONG_USAGE, INCONCLUSIVE, OUR_BUG = 0, 1, 2, 3, 70
# What keeps a file from being written that is no fault of whoever named it.
MACHINE_FAULTS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
)
