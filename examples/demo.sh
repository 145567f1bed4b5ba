#!/bin/sh
# A short tour: programs that are right, two that are wrong, one that is run, timed and debugged; and
# the whole road of a trained network, from its file to a report.
# Needs `nacre` on the PATH, and `python` with NumPy; `make demo` sees to that.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d "${TMPDIR:-/tmp}/nacre-demo.XXXXXX")

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

title "6. Run a convolution, bit-true, and compare with NumPy"
python - "$folder" <<'PYTHON'
import sys
import numpy as np

folder = sys.argv[1]
x = (np.arange(4 * 16 * 16 * 64) % 251 - 125).astype(np.int8).reshape(4, 16, 16, 64)
w = (np.arange(3 * 3 * 64 * 128) % 31 - 15).astype(np.int8).reshape(3, 3, 64, 128)
bias = (np.arange(128) * 256 - 16384).astype(np.int32)
windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64) - 3, (3, 3), axis=(1, 2))
sums = np.einsum("nhwcij,ijco->nhwo", windows, w.astype(np.int64), optimize=True) + bias
scale = np.float32(0.02) * np.float32(0.005) / np.float32(0.25)
y = np.clip(np.rint(sums.astype(np.float32) * scale) - 10, -10, 127).astype(np.int8)
for name, array in (("x", x), ("w", w), ("b", bias), ("expected", y)):
    np.save(f"{folder}/{name}.npy", array)
PYTHON
inputs='--input X_L2=$folder/x.npy --input W_L2=$folder/w.npy --input B_L2=$folder/b.npy'
output='--output Y_L2:i8:4x14x14x128=$folder/y.npy'
run "nacre run examples/conv2d_relu.nem $inputs $output"
cmp "$folder/y.npy" "$folder/expected.npy"
echo "the same bytes as NumPy's int64 sums, rescaled"

title "7. Any legal order gives the same bytes: three random schedules"
for seed in 1 2 3; do
    run "nacre run examples/conv2d_relu.nem --schedule random --seed $seed $inputs $output"
    cmp "$folder/y.npy" "$folder/expected.npy"
done
echo "the same bytes each time"

title "8. The same program in time: what limits it, and what a faster NMU would bring"
run 'nacre run examples/conv2d_relu.nem --mode timed --no-values --what-if NMU.int8_macs=8192'

title "9. A page that shows where the time goes"
run "nacre run examples/conv2d_relu.nem --mode timed --no-values --report \$folder/report.html | head -2"
[ -s "$folder/report.html" ]
echo "open it in a browser: $folder/report.html"

title "10. The debugger, forwards and backwards: who wrote the bytes that ReLU is about to read?"
run "nacre debug examples/conv2d_relu.nem $inputs --batch --command 'break tR if i == 1' \\
    --command continue --command 'who Y_L1' --command back --command tasks"

title "11. The whole road: a trained network, from its file to a plan that is checked, run and timed"
run "nacre demo -o \$folder/digits"
[ -s "$folder/digits/report.html" ]
[ -s "$folder/digits/bundle/model.nem" ]

title "12. The plan is a program like any other"
run "nacre run \$folder/digits/bundle/model.nem --mode timed --no-values | grep -A1 '^cycles'"
echo "open it in a browser: $folder/digits/report.html"

rm -f "$folder"/*.npy
printf '\nShown: checks, the canonical form, two diagnostics, a rule; a run that is right to the bit in '
printf 'every order, its time and what limits it, a report page, the debugger; and a network that was '
printf 'quantised, compiled, checked, run and timed.\n'
