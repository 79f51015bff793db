"""Base classes of the formats of failing cases, and the selection of the failed responses that they export."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from django.db.models import Exists, OuterRef, QuerySet

from hub.bundles.reference_answers import ReferenceAnswers
from hub.bundles.stored import open_stored_bundle
from hub.manifest.problems import BundleError
from hub.models import EnvironmentVersion
from hub.protocols.cases import CaseData
from hub.protocols.messages import (
    Message,
    Tool,
    is_empty_answer,
    plain_message,
    plain_message_with_reasoning,
    up_to_last_answer,
)
from hub.selectors import get_offered_tools
from runs.exports.protocol import CHUNK, ExportFormat, JSONObject, LeftOut
from runs.exports.selection import DEFECTIVE, HELD_OUT_SPLIT
from runs.models import Response, RunEnvironment, RunModel
from runs.results.breakdown.reasons import pattern_regex
from runs.results.counting import defective_cases
from runs.selectors import ResponseFilters, responses_matching

Completion = Literal["gold", "attempt", "model"]
"""Where a right answer to a failed case comes from: its gold answer, another attempt of the model, another model."""

COMPLETIONS: tuple[Completion, ...] = ("gold", "attempt", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureFilters(ResponseFilters):
    """What to export of the failing cases of a run.

    by, value, solved: a part of the cases of the environment, as in `select_cases`. cases: ids of the only cases.
    completion: the only source of right answers, of COMPLETIONS; by default all, in their order.
    """

    by: str = ""
    value: str = ""
    solved: str = ""
    cases: Collection[str] | None = None
    completion: str = ""

    @property
    def completions(self) -> Sequence[Completion]:
        """Return the sources of right answers that may be used."""
        return [source for source in COMPLETIONS if self.completion in ("", source)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSelection:
    """Failed responses in *environments* of a run, of *model* and *cases* if they are not None.

    filters: those whose names were looked up, for the others. training: without cases of held-out splits.
    """

    filters: FailureFilters
    model: RunModel | None
    environments: list[RunEnvironment]
    cases: Collection[str] | None
    training: bool

    def responses(self, environment: RunEnvironment) -> QuerySet[Response]:
        """Return the failed responses in the order of cases.

        If only one source of right answers may be used, those of a case that have such an answer come first.
        """
        found = Response.objects.filter(run_environment=environment, status=Response.Status.FAILED, run_model__role="")
        if self.model is not None:
            found = found.filter(run_model=self.model)
        if self.cases is not None:
            found = found.filter(case__external_id__in=self.cases)
        filters = self.filters
        regex = pattern_regex(filters.reason) if filters.reason else ""
        found = responses_matching(
            found, versions=[environment.version_id], q=filters.q, flag=filters.flag, reason=regex
        )
        order = ["run_model__position", "attempt"]
        if filters.completion in ("attempt", "model"):
            passing = passing_responses(environment).filter(case=OuterRef("case"))
            of_model = {"run_model": OuterRef("run_model")}
            passing = passing.filter(**of_model) if filters.completion == "attempt" else passing.exclude(**of_model)
            found = found.annotate(has_answer=Exists(passing))
            order = ["-has_answer", *order]
        ordered = found.order_by("case__position", *order)
        return ordered.select_related("case", "run_model").prefetch_related("scores")

    def read(self, environment: RunEnvironment) -> "Iterator[Failure]":
        """Yield the failed responses, loaded in chunks."""
        defective = defective_cases(environment)
        for response in self.responses(environment).iterator(chunk_size=CHUNK):
            response.run_environment = environment
            held_out = HELD_OUT_SPLIT if self.training and response.case.held_out else ""
            yield Failure(response, DEFECTIVE if response.case_id in defective else held_out)

    def read_first(self, environment: RunEnvironment) -> "Iterator[Failure]":
        """Yield the first failed response of each case."""
        seen: set[int] = set()
        for failure in self.read(environment):
            if failure.response.case_id not in seen:
                seen.add(failure.response.case_id)
                yield failure


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed response, with right answers to its case if the format needs them.

    unfit: why the case must not be exported, or empty. gold: the gold answers of its environment. passing: a response
    of the run to the same case that passed. wanted: the sources of right answers that may be used, in this order.
    """

    response: Response
    unfit: str = ""
    gold: ReferenceAnswers | None = None
    passing: Response | None = None
    wanted: Sequence[Completion] = COMPLETIONS


class FailureFormat(ExportFormat[Failure]):
    """Format of failing cases."""

    def failures(self, selection: FailureSelection) -> Iterator[Failure]:
        """Yield the failures to export: by default, every failed response."""
        for environment in selection.environments:
            yield from selection.read(environment)

    def rows(self, item: Failure) -> Iterable[JSONObject]:
        if item.unfit:
            raise LeftOut(item.unfit)
        return self.convert(item)

    @abstractmethod
    def convert(self, item: Failure) -> Iterable[JSONObject]:
        """Return the rows of a failure whose case may be exported. Raises LeftOut."""


class CompletionFormat(FailureFormat):
    """Format with one row for each failing case that has a right answer: gold, or of a response that passed.

    If several models or attempts failed a case, its row is made from the first failure that has a right answer.
    """

    def failures(self, selection: FailureSelection) -> Iterator[Failure]:
        wanted = selection.filters.completions
        for environment in selection.environments:
            with _open_gold(environment.version) as gold:
                for chunk in _chunks(selection.read_first(environment)):
                    failed = [failure.response for failure in chunk]
                    passing = {} if wanted == ["gold"] else find_passing(environment, failed, wanted)
                    for failure in chunk:
                        found = passing.get(failure.response.case_id)
                        yield replace(failure, gold=gold, passing=found, wanted=wanted)


def _chunks(failures: Iterator[Failure]) -> Iterator[list[Failure]]:
    while chunk := list(islice(failures, CHUNK)):
        yield chunk


def passing_responses(environment: RunEnvironment) -> QuerySet[Response]:
    """Return the responses of models under test that passed."""
    return Response.objects.filter(
        run_environment=environment, status=Response.Status.PASSED, run_model__role=""
    ).order_by()


def find_passing(
    environment: RunEnvironment, failed: Sequence[Response], wanted: Sequence[Completion]
) -> dict[int, Response]:
    """Return a response that passed for each case of *failed*, by the case's id; cases without one are missing.

    One of the model that failed is preferred, then the models are taken in the order of the config, and the attempts in
    theirs.
    """
    model_of = {response.case_id: response.run_model_id for response in failed}
    rows = passing_responses(environment).filter(case__in=model_of).order_by("run_model__position", "attempt")
    chosen: dict[int, tuple[bool, int]] = {}  # case -> whether another model gave it, and the response
    for pk, case, model in rows.values_list("pk", "case_id", "run_model_id"):
        other = model != model_of[case]
        if ("model" if other else "attempt") in wanted and (case not in chosen or (chosen[case][0] and not other)):
            chosen[case] = (other, pk)
    found = Response.objects.select_related("run_model").in_bulk([pk for _, pk in chosen.values()])
    return {case: found[pk] for case, (_, pk) in chosen.items()}


@contextmanager
def _open_gold(version: EnvironmentVersion) -> Iterator[ReferenceAnswers]:
    with open_stored_bundle(version) as bundle, ReferenceAnswers(bundle.manifest.gold, "gold", bundle.file) as gold:
        yield gold


@dataclass(frozen=True, slots=True)
class Completed:
    """Prompt and right answer as a transcript, the tools on offer, and the source of the answer."""

    messages: list[Message]
    tools: list[Tool]
    source: JSONObject


def completed(failure: Failure) -> Completed:
    """Return the case of *failure* with a right answer. Raises LeftOut with the reason why there is none."""
    if "gold" in failure.wanted:
        try:
            return _gold_transcript(failure)
        except LeftOut:
            if failure.passing is None:
                raise
    if failure.passing is None:
        what = "attempt of the model" if "attempt" in failure.wanted else "model"
        raise LeftOut(f"no other {what} passed")
    return _passing_transcript(failure.response, failure.passing)


def _gold_transcript(failure: Failure) -> Completed:
    response = failure.response
    prompt = response.prompt
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
    messages = [*(plain_message(message) for message in prompt), answer]
    return Completed(messages, tools or [], {"kind": "gold"})


def _passing_transcript(failed: Response, passing: Response) -> Completed:
    """Return the transcript of *passing* up to its last answer, with the environment's messages between its turns.

    Trainers expect that an example ends with the assistant.
    """
    answers = up_to_last_answer(passing.messages)[passing.first_answer :]
    if any(is_empty_answer(message) for message in answers):
        raise LeftOut("the answer that passed is empty, or says nothing in one of its turns")
    tools = get_offered_tools(failed.run_environment.version, failed.case)
    messages = [plain_message_with_reasoning(message) for message in up_to_last_answer(passing.messages)]
    if any(message.get("tool_calls") for message in messages) and not tools:
        raise LeftOut("the answer that passed calls tools that are not stored with the environment")
    kind = "attempt" if passing.run_model_id == failed.run_model_id else "model"
    source: JSONObject = {
        "kind": kind,
        "model": passing.run_model.label,
        "run": failed.run_environment.run_id,
        "response": passing.pk,
    }
    return Completed(messages, tools or [], source)
