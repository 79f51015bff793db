"""The exceptions of the sandbox.

SandboxError
  +-- SandboxUnavailable    no engine, or a weaker isolation tier than the configuration accepts
  +-- EngineFailed          an engine died or broke its protocol; the pool tries again, see `Pool.run`
"""


class SandboxError(Exception):
    """Anything that goes wrong with the sandbox itself, never with the code it runs."""


class SandboxUnavailable(SandboxError):
    """The sandbox cannot be used here; the message says what was found and which settings would mend it."""


class EngineFailed(SandboxError):
    """An engine ended, hung or sent what is not in its protocol."""
