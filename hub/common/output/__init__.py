"""Files that exports write, the .zip that a download sends, and text that is safe to print."""
