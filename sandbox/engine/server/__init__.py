"""The engine's own process: talks to the pool and manages runs."""
