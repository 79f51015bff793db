"""Connections to engines: one transport per backend, and the runs of one job in its engines."""
