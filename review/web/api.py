"""REST API of the review queue: the next pair, one pair as its reviewer sees it, and the decision."""

from collections.abc import Iterable, Sequence

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response as Answer
from rest_framework.views import APIView

from hub.common.rest.errors import ErrorBody
from hub.common.rest.serializers import StrictSerializer
from hub.common.web.users import signed_in_user
from hub.protocols.messages import (
    JSON,
    Message,
    call_text,
    calls_of,
    plain_message,
    text_of,
)
from hub.selectors import may_see_content
from preferences.decision_fields import MAX_TEXT, decision_fields, is_side_valued, is_text, letter_choices
from preferences.evidence import SideEvidence, evidence_of, without_reasons
from preferences.models import Issue, Preference
from preferences.sides import Sides
from preferences.spans import text_hash
from review.decisions import MAX_DEFECT, Decision, decide
from review.issues import MarkedIssue
from review.judge.suggestions import ShownSuggestion, is_acceptable, show_suggestion
from review.models import Assignment, Pair
from review.queue.assignments import (
    ALL_ASSIGNED,
    AssignmentLost,
    claim_next_pair,
    claim_pair,
    current_assignment,
    pair_availability,
    preview_assignment,
)
from review.queue.blinding import DECIDE
from review.web.forms import RunFilter
from review.web.queries import get_visible_pair
from runs.models import Response


class Reviewers(BasePermission):
    """Permission to review, also required for GET because the next pair is claimed by GET."""

    message = f"Your account lacks the permission {DECIDE}. Ask an administrator to add you to the group Reviewer."

    def has_permission(self, request: Request, view: APIView) -> bool:
        return request.user.has_perm(DECIDE)


class IssueIn(StrictSerializer):
    """Issue in a span of a message text, from code point `start` to `end`, or in the whole response without them.

    With `call` they count code points of the text of that tool call: `messages[…].calls[call].text`.
    """

    side = serializers.ChoiceField(["A", "B"])
    category = serializers.SlugField()
    severity = serializers.ChoiceField(Issue.Severity.values, default="major")
    note = serializers.CharField(default="", allow_blank=True, max_length=2000)
    message = serializers.IntegerField(default=0, min_value=0)
    call = serializers.IntegerField(default=None, min_value=0, allow_null=True)
    start = serializers.IntegerField(default=None, min_value=0, allow_null=True)
    end = serializers.IntegerField(default=None, min_value=0, allow_null=True)
    text_hash = serializers.CharField(default="", allow_blank=True, max_length=64)


def _letters(choices: Iterable[tuple[object, object]]) -> list[str]:
    """Return the values of side-valued *choices* with A and B for the sides."""
    return [value.upper() if value in ("a", "b") else value for value, _ in letter_choices(choices)]


class DecisionFields(serializers.ModelSerializer[Preference]):
    """Fields of a decision that are derived from the model."""

    class Meta:
        model = Preference
        fields = Preference.DECISION_FIELDS
        extra_kwargs = {
            field.name: {"choices": _letters(field.flatchoices)}
            if is_side_valued(field)
            else {"max_length": field.max_length or MAX_TEXT}
            for field in decision_fields()
            if is_side_valued(field) or is_text(field)
        }


class DecisionIn(StrictSerializer):
    """Decision. `kept`: ids of suggested issues to keep. `defect`: what is wrong with the tests.

    A verdict that contradicts the tests requires `defect`.
    """

    verdict = serializers.ChoiceField(_letters(Preference.Verdict.choices))
    issues = IssueIn(many=True, default=list)
    kept = serializers.ListField(child=serializers.IntegerField(), default=list)
    defect = serializers.CharField(default="", allow_blank=True, max_length=MAX_DEFECT)
    blind = serializers.BooleanField(
        default=False, help_text="The verdict was given before the hidden suggestion was shown."
    )

    def get_fields(self) -> dict[str, serializers.Field[object, object, object, object]]:
        return {**super().get_fields(), **DecisionFields().get_fields()}


def pair_json(assignment: Assignment) -> dict[str, JSON]:
    """Return a pair as its reviewer sees it: without model names, sides shuffled, suggestion unless hidden.

    For a preview, *assignment* is not saved.
    """
    pair, sides = assignment.pair, Sides(assignment.swapped)
    a, b = sides.ordered(pair.first, pair.second)
    evidence = evidence_of(a, b)
    if not may_see_content(assignment.reviewer, pair.first.run_environment.version.environment):
        evidence = without_reasons(evidence)
    shown = show_suggestion(assignment=assignment)
    if assignment.pk:
        assignment.refresh_from_db(fields=["lease_until"])  # the database has computed it
    return {
        "pair": pair.pk,
        "state": assignment.state if assignment.pk else "free",
        "lease_until": assignment.lease_until.isoformat() if assignment.lease_until else None,
        "environment": str(pair.first.run_environment.version),
        "case": pair.case.external_id,
        "prompt": a.prompt,
        "A": _side(a, evidence["first"]),
        "B": _side(b, evidence["second"]),
        "suggestion": None if shown is None else _suggestion_json(shown, pair, sides),
        "suggestion_hidden": pair.suggestion is not None and shown is None,
    }


def _suggestion_json(shown: ShownSuggestion, pair: Pair, sides: Sides) -> dict[str, JSON]:
    return {
        "verdict": sides.letter(shown.verdict),
        "confidence": shown.confidence,
        "critique": sides.shown(shown.critique),
        "order_sensitive": shown.order_sensitive,
        "acceptable": is_acceptable(shown, pair),
        "issues": [
            {
                "id": issue.pk,
                "side": sides.letter(issue.side),
                "category": issue.category.slug,
                "severity": issue.severity,
                "note": sides.shown(issue.note),
                "message": issue.message,
                "call": issue.call,
                "start": issue.start,
                "end": issue.end,
                "quote": issue.quote,
            }
            for issue in shown.issues
        ],
    }


def _side(response: Response, evidence: SideEvidence) -> dict[str, JSON]:
    blinded, start = _without_traces_of_model(response.messages), response.first_answer
    messages = [
        {"index": i, "text_hash": text_hash(text_of(message)), **_calls(message), **blinded[i]}
        for i, message in enumerate(response.messages)
        if i >= start
    ]
    return {"messages": messages, "status": response.status, "score": response.score, "rules": evidence["rules"]}


def _without_traces_of_model(messages: Sequence[Message]) -> list[Message]:
    """Return *messages* without what differs between endpoints: keys of their own, and ids of tool calls.

    The ids are replaced by numbers.
    """
    ids: dict[str, str] = {}
    found = [plain_message(message) for message in messages]
    for message in found:
        for call in message.get("tool_calls", []):
            call["id"] = ids.setdefault(str(call["id"]), f"call_{len(ids)}")
        if "tool_call_id" in message:
            identity = str(message["tool_call_id"])
            message["tool_call_id"] = ids.setdefault(identity, f"call_{len(ids)}")
    return found


def _calls(message: Message) -> dict[str, JSON]:
    """Return the tool calls of a message as the texts to which offsets of marks refer."""
    texts = [call_text(call) for call in calls_of(message)]
    return {"calls": [{"text": text, "text_hash": text_hash(text)} for text in texts]} if texts else {}


class PairNext(APIView):
    """Return the pair assigned to you, or claim the next one of the queue. Responds 204 if no pair waits for you."""

    permission_classes = [IsAuthenticated, Reviewers]
    read_scope = write_scope = "review"

    @extend_schema(parameters=[OpenApiParameter("run", int)], responses={200: OpenApiTypes.OBJECT, 204: None})
    def get(self, request: Request) -> Answer:
        run = RunFilter(request.query_params).values()["run"]
        assignment = claim_next_pair(signed_in_user(request), run=run).assignment
        if assignment is None:
            return Answer(status=204)
        assignment.pair = get_visible_pair(request.user, assignment.pair_id)
        return Answer(pair_json(assignment))


class PairDetail(APIView):
    """Return one pair as you would review it, without claiming it. Responds 409 if all its assignments are taken.

    If the pair is not assigned to you, the state is `free` and the suggestion is hidden; a decision claims the pair.
    """

    permission_classes = [IsAuthenticated, Reviewers]
    read_scope = write_scope = "review"

    @extend_schema(responses={200: OpenApiTypes.OBJECT, 409: OpenApiResponse(ErrorBody)})
    def get(self, request: Request, pk: int) -> Answer:
        pair, user = get_visible_pair(request.user, pk), signed_in_user(request)
        assignment = current_assignment(pair, user)
        if assignment is None:
            if not pair_availability(pair)[0]:
                raise AssignmentLost(ALL_ASSIGNED)
            assignment = preview_assignment(pair, user)
        assignment.pair = pair
        return Answer(pair_json(assignment))


def _claimed(request: Request, pk: int) -> Assignment:
    pair = get_visible_pair(request.user, pk)
    assignment = claim_pair(pair, signed_in_user(request))
    assignment.pair = pair
    return assignment


class PairDecision(APIView):
    """Decide a pair, claiming it if necessary. Returns the preference id, or the suggestion if it was hidden."""

    permission_classes = [IsAuthenticated, Reviewers]
    read_scope = write_scope = "review"

    @extend_schema(
        request=DecisionIn,
        responses={200: OpenApiTypes.OBJECT, 400: OpenApiResponse(ErrorBody), 409: OpenApiResponse(ErrorBody)},
    )
    def post(self, request: Request, pk: int) -> Answer:
        data = DecisionIn.read(request)
        assignment = _claimed(request, pk)
        sides = Sides(assignment.swapped)
        decision = Decision(
            verdict=sides.verdict(data["verdict"]),
            fields={name: data[name] for name in Preference.DECISION_FIELDS if name in data},
            issues=[MarkedIssue(**{**item, "side": sides.side(item["side"])}) for item in data["issues"]],
            kept=data["kept"],
            defect=data["defect"],
            blind=data["blind"],
        )
        stored: Preference | None = decide(assignment=assignment, decision=decision)
        if stored is None:
            shown = show_suggestion(assignment=assignment)
            return Answer({"preference": None, "confirm": shown and _suggestion_json(shown, assignment.pair, sides)})
        return Answer({"preference": stored.pk})
