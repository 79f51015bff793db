"""Fuzzing of all readers of bytes from a run: codec, frames, reports, replies to a test judge."""
