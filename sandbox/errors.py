"""The exceptions of the sandbox.

SandboxError
  +-- SandboxUnavailable     no engine, or a weaker isolation tier than the configuration accepts
  |     +-- SandboxUnreachable   the service that starts engines does not respond; a later attempt may succeed
  +-- EngineFailed           an engine ended or broke its protocol; the pool tries again
  +-- InfrastructureFailed   the engine could not run the code; the pool tries again
"""


class SandboxError(Exception):
    """A failure of the sandbox itself, never of the code that it runs."""


class SandboxUnavailable(SandboxError):
    """The sandbox cannot be used here. The message says what was found and which settings to change."""


class SandboxUnreachable(SandboxUnavailable):
    """The service that starts engines, or engines that worked before, do not respond. A later attempt may succeed."""


class EngineFailed(SandboxError):
    """An engine ended, did not respond, or broke its protocol."""


class InfrastructureFailed(SandboxError):
    """The code could not be run; the message is the reason."""
