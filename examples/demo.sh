#!/bin/sh
# A short tour: programs that are right, the formatter, and one program that is wrong.
# Needs `nacre` on the PATH; `make demo` sees to that.
set -eu
cd "$(dirname "$0")/.."

title() { printf '\n== %s\n' "$1"; }
run() { printf '$ %s\n' "$1"; eval "$1"; }

title "1. Every example is a program without a finding, in the strictest mode"
run 'nacre check --strict examples/*.nem examples/devices/*.nem'

title "2. They are in canonical form: the formatter would change nothing"
run 'nacre fmt --check examples/*.nem examples/devices/*.nem'
echo "all canonical"

title "3. This one has a mistake: its buffers do not fit in the device's L1"
status=0
run 'nacre check examples/broken/l1_overflow.nem' || status=$?
if [ "$status" -ne 1 ]; then
    echo "expected exit status 1 (errors in the input), got $status" >&2
    exit 1
fi

title "4. Every finding has a code, and every code a page"
run 'nacre rule BUF07'

printf '\nShown: a strict check, the canonical form, a diagnostic with its places, and its rule.\n'
