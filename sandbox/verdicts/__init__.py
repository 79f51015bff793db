"""From a job to its outcome: starts the runs of a job in an engine, reads their reports, and decides the status."""
