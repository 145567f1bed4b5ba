"""What stays f32 in a plan of f16, and f32 on units that have f16."""
