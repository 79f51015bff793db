"""Exceptions in a judge's process if the candidate ended, tampers, returns too much, lacks a name, or raised itself."""


class CandidateGone(BaseException):
    """The candidate's process ended. Not an Exception, so that `except Exception` in a test does not catch it."""


class Tampered(BaseException):
    """The candidate sent a message that the engine's own code never sends."""


class TooLarge(BaseException):
    """The candidate's result is larger than allowed."""


class Missing(BaseException):
    """The code does not define a name that the tests use."""


class RemoteError(Exception):
    """An exception of the code whose class has no counterpart in the tests' process."""
