"""Base classes of the formats of failing cases, and the selection of the failed responses that they export."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db.models import QuerySet

from hub.bundles.answers import ReferenceAnswers
from hub.bundles.loader import Bundle, open_archive
from hub.manifest.problems import BundleError
from hub.models import EnvironmentVersion
from hub.protocols.cases import CaseData
from hub.protocols.messages import Message, Tool, get_prompt_messages, plain_message
from hub.selectors import get_offered_tools
from runs.exports.protocol import CHUNK, ExportFormat, LeftOut
from runs.models import Response, Run, RunEnvironment, RunModel
from runs.results.counting import defective_cases
from runs.selectors import responses_matching


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSelection:
    """Failed responses of *run* in *environments*. `q` and `flag` are the filters of the list of responses."""

    run: Run
    model: RunModel | None = None
    environments: list[RunEnvironment]
    q: str = ""
    flag: str = ""

    def responses(self, environment: RunEnvironment) -> QuerySet[Response]:
        """Return the failed responses in the order of cases, without cases that a curator found wrong."""
        found = Response.objects.filter(run_environment=environment, status=Response.Status.FAILED, run_model__role="")
        if self.model is not None:
            found = found.filter(run_model=self.model)
        found = responses_matching(found, q=self.q, flag=self.flag)
        return (
            found.exclude(case_id__in=defective_cases(environment))
            .select_related("case", "run_model")
            .prefetch_related("scores")
            .order_by("case__position", "run_model__position", "attempt")
        )

    def read(self, environment: RunEnvironment) -> Iterator[Response]:
        """Yield the failed responses, loaded in chunks."""
        for response in self.responses(environment).iterator(chunk_size=CHUNK):
            response.run_environment = environment
            yield response

    def read_first(self, environment: RunEnvironment) -> Iterator[Response]:
        """Yield the first failed response of each case."""
        seen: set[int] = set()
        for response in self.read(environment):
            if response.case_id not in seen:
                seen.add(response.case_id)
                yield response


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed response, with the gold answers of its environment if the format needs them."""

    response: Response
    gold: ReferenceAnswers | None = None


class FailureFormat(ExportFormat[Failure]):
    """Format of failing cases."""

    def failures(self, selection: FailureSelection) -> Iterator[Failure]:
        """Yield the failures to export: by default, every failed response."""
        for environment in selection.environments:
            for response in selection.read(environment):
                yield Failure(response)


class GoldFormat(FailureFormat):
    """Format with one row for each failing case that has a gold answer of one message, a text or calls of tools.

    If several models or attempts failed a case, its row is made from the first failure.
    """

    def failures(self, selection: FailureSelection) -> Iterator[Failure]:
        for environment in selection.environments:
            with _open_gold(environment.version) as gold:
                for response in selection.read_first(environment):
                    yield Failure(response, gold)


def open_version(version: EnvironmentVersion) -> Bundle:
    """Open the stored bundle of *version*. Raises BundleError."""
    return open_archive(version.archive.open("rb"))


@contextmanager
def _open_gold(version: EnvironmentVersion) -> Iterator[ReferenceAnswers]:
    with open_version(version) as bundle, ReferenceAnswers(bundle.manifest.gold, "gold", bundle.file) as gold:
        yield gold


def gold_messages(failure: Failure) -> tuple[list[Message], list[Tool]]:
    """Return the prompt followed by the gold answer, and the tools on offer. Raises LeftOut."""
    response = failure.response
    prompt = get_prompt_messages(response.messages)
    if not prompt:
        raise LeftOut("the transcript has no prompt")
    try:
        answers = failure.gold.of(CaseData.from_json(response.case.data)) if failure.gold else []
    except BundleError:
        raise LeftOut("the template of the gold answers does not render to text for the case") from None
    if not answers:
        raise LeftOut("no gold answer")
    if len(answers[0].messages) > 1:
        raise LeftOut("the gold answer takes several turns, and the environment's messages between them are not stored")
    tools = get_offered_tools(response.run_environment.version, response.case)
    answer = plain_message(answers[0].messages[0])
    if answer.get("tool_calls") and not tools:
        raise LeftOut("the gold answer calls tools that are not stored with the environment")
    return [*(plain_message(message) for message in prompt), answer], tools or []
