"""Instructions that a program can verify: one class for each kind, its keyword arguments as fields."""
