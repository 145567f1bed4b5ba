"""Core IR as MLIR text: functions over tensors in the dialects tensor, linalg, arith and math."""
