"""Correct solutions of unusual kinds, each with tests in every style that fits. None may be reported as wrong."""
