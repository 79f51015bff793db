"""The protocols between processes: frames, encoded values, operations and replies."""
