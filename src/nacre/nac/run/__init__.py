"""The machine: ABCD instructions on the shared kernels, memory as the schedule says."""
