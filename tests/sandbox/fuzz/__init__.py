"""Fuzzing of everything that reads bytes which a run has written: codec, frames, reports, answers to a judge."""
