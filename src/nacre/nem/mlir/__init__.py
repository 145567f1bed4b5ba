"""NEM as a dialect of MLIR: programs written and read, and the dialect itself as an IRDL file."""
