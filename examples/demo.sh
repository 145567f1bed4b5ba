#!/bin/sh
# A short tour: programs that are right, the formatter, and two programs that are wrong.
# Needs `nacre` on the PATH; `make demo` sees to that.
set -eu
cd "$(dirname "$0")/.."

title() { printf '\n== %s\n' "$1"; }
run() { printf '$ %s\n' "$1"; eval "$1"; }

# Runs a check that must find errors in its input: exit status 1.
run_wrong() {
    status=0
    run "$1" || status=$?
    [ "$status" -eq 1 ] || { echo "expected exit status 1, got $status" >&2; exit 1; }
}

title "1. Every example is without an error or a warning, in the strictest mode"
run 'nacre check --strict examples/*.nem examples/devices/*.nem'

title "2. They are in canonical form: the formatter would change nothing"
run 'nacre fmt --check examples/*.nem examples/devices/*.nem'
echo "all canonical"

title "3. This one does not fit: its buffers need more L1 than the device has"
run_wrong 'nacre check examples/broken/l1_overflow.nem'

title "4. This one has a race: three iterations in flight share two slots"
run_wrong 'nacre check examples/broken/ring_too_small.nem'

title "5. Every finding has a code, and every code a page"
run 'nacre rule HAZ06'

printf '\nShown: a strict check, the canonical form, two diagnostics with their places, and a rule.\n'
