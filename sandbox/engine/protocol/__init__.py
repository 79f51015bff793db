"""What crosses between processes: frames, encoded values, operations and replies."""
