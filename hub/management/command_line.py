"""The command line of Django, with the exit codes of LLM-Eval."""

import sys

from django.core.management import BaseCommand, ManagementUtility

from hub.management.base import WRONG_INPUT


class CommandLine(ManagementUtility):
    """Command line on which an unknown command is invalid input. Django exits with 1, which means errored responses."""

    def fetch_command(self, subcommand: str) -> BaseCommand:
        try:
            return super().fetch_command(subcommand)
        except SystemExit:  # Django has printed that there is no such command, and a similar one
            sys.exit(WRONG_INPUT)
