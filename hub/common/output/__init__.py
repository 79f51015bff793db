"""Files that exports write, and the .zip that a download sends."""
