"""What a bound program costs, and where: timed, bank by bank, cause by cause."""
