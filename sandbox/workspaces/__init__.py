"""Workspaces: Linux boxes in which models run commands, and in which their results are checked."""
