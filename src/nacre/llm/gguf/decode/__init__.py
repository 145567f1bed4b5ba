"""Blocks of quantised elements as f32, in the order of operations that gives everybody's bits."""
