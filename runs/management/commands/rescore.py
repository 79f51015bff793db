"""`manage.py rescore`: score the stored responses of a run again, as a new run, without asking a model."""

from argparse import ArgumentParser
from typing import TypedDict, Unpack

from django.conf import settings

from hub.common.leases import new_owner
from hub.management import base
from hub.management.base import INTERRUPTED, UNAVAILABLE
from runs.execution.faults import InfrastructureFault
from runs.execution.progress import RunProgress
from runs.execution.runner import execute_run
from runs.execution.session.context import ExecutionOptions
from runs.management.run_end import check_scored, resume_command
from runs.missing import count_missing
from runs.reports import print_report, results_json
from runs.rescoring import create_rescoring
from runs.selectors import get_run
from runs.services import interrupt_run


class Options(TypedDict):
    """Options of the command as parsed."""

    run: str
    json: bool


class Command(base.Command):
    help = (
        "Score the stored responses of a run again with the current version of its environments, as a new run. No "
        "model is asked: responses, and the replies of simulated users and judges, are replayed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="number of the run, `latest`, or `latest:TAG`")
        base.add_json_argument(parser)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        console = base.ReportConsole(stderr=options["json"], soft_wrap=False)
        owner = new_owner()
        rescoring = create_rescoring(run=get_run(options["run"]), owner=owner)
        run = rescoring.run
        for line in rescoring.notes():
            self.stderr.write(line)
        try:
            with RunProgress(console, count_missing(run)) as progress:
                how = ExecutionOptions(use_cache=False, signals=True, retry_for_s=settings.EVAL_RETRY_SECONDS)
                run = execute_run(run=run, config=rescoring.config, listener=progress, options=how, owner=owner)
        except InfrastructureFault as fault:
            raise self.exit_with(UNAVAILABLE, f"{fault} Continue with: {resume_command(run)}") from None
        except KeyboardInterrupt:
            interrupt_run(run=run, owner=owner)
            raise self.exit_with(INTERRUPTED, f"Interrupted. Continue with: {resume_command(run)}") from None
        results = results_json(run)
        self.print_json({**results, "rescored_from": run.rescored_from_id, "left_out": rescoring.left_out})
        if not options["json"]:
            print_report(run, console)
        check_scored(run, results, self)
