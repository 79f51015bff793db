"""The warm interpreter that forks once per run."""
