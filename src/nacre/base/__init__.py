"""Words that every room shares: sources, diagnostics, rules, element types, bit packing."""
