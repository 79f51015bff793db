"""A site with something on every page, and the addresses of its pages by the address in the access table."""

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import default_token_generator
from django.test import Client
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from hub.bundles.loader import open_bundle
from hub.bundles.validation import validate_bundle
from hub.models import CaseDefect, Environment, EnvironmentVersion, Team, UploadDraft
from hub.services import import_bundle
from hub.teams.quotas import this_month
from hub.web.drafts import keep_draft
from preferences.models import IssueCategory, Preference
from preferences.services import NewIssue
from preferences.spans import find_quote
from review.models import Guideline, JudgeCall, Pair
from runs.models import ModelEndpoint, Response, Run, RunTag, TeamSpend
from tests.factories import stored_outcomes, stored_run, stored_score
from tests.hub.bundle_files import ROWS, WRONG, lines, write_bundle
from tests.review.pages import suggest, waiting_pairs
from tests.site.accounts.access_table import ROLES

GATES = [
    {"name": name, "what": f"{name}: what it checks.", "status": status, "checked": 3, "failed": failed, "note": ""}
    for name, status, failed in (("gold", "passed", 0), ("wrong", "failed", 1), ("leak", "not_run", 0))
]
README = "# Capitals\n\nMade **by hand**.\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```python\nx = 1\n```\n"
CALL = {"id": "call-1", "type": "function", "function": {"name": "look_up", "arguments": '{"country": "Spain"}'}}
CODE = "Sure.\n\n```python\ndef f(x):\n    y = x / 0  # " + "a long remark that wraps " * 12 + "\n    return y\n```\n"


@dataclass(frozen=True)
class FullSite:
    """A site with something on every page. `user` may do everything."""

    user: User
    run: Run
    going: Run
    broken: Run
    response: Response
    pair: Pair
    preference: Preference
    defect: CaseDefect
    draft: UploadDraft
    team: Team
    model: str
    other_model: str

    @property
    def environment(self) -> str:
        """The slug of the environment of the run."""
        return self.defect.case.version.environment.slug

    @property
    def comparison(self) -> str:
        """The query that compares the two models of the run."""
        return urlencode(
            {
                "a": self.run.pk,
                "model_a": self.model,
                "model_b": self.other_model,
                "environment": self.environment,
            }
        )

    def address(self, sample: str) -> str:
        """Return the address of this site for *sample*, an address of the access table."""
        case, version = self.defect.case, self.defect.case.version
        token = f"{urlsafe_base64_encode(force_bytes(self.user.pk))}/{default_token_generator.make_token(self.user)}"
        failed = quote(self.response.case.external_id, safe="")
        replacements = [
            (r"^/runs/1/cases/1/", f"/runs/{self.run.pk}/cases/{self.response.case_id}/"),
            (r"^/hub/upload/[0-9a-f-]{36}/", f"/hub/upload/{self.draft.pk}/"),
            (r"^/teams/sums/members/1.0.0/", f"/teams/{self.team.slug}/members/{self.user.username}/"),
            (r"^/teams/sums/", f"/teams/{self.team.slug}/"),
            (r"^/docs/c0$", "/docs/scorers.md"),
            (r"^/runs/1/", f"/runs/{self.run.pk}/"),
            (r"^/responses/1/", f"/responses/{self.response.pk}/"),
            (r"^/preferences/1/", f"/preferences/{self.preference.pk}/"),
            (r"^/review/preferences/1/", f"/review/preferences/{self.preference.suggestion_id}/"),
            (r"^/review/responses/1/", f"/review/responses/{self.pair.second_id}/"),
            (r"^/review/runs/1/", f"/review/runs/{self.pair.run_id}/"),
            (r"^/review/1/", f"/review/{self.pair.pk}/"),
            (r"^/endpoints/1/", f"/endpoints/{ModelEndpoint.objects.order_by('pk')[0].pk}/"),
            (r"^/models/c0/", f"/models/{quote(self.model, safe='')}/"),
            (r"^/password/new/1.0.0/1.0.0/", f"/password/new/{token}/"),
            (r"^/compare/$", f"/compare/?a={self.run.pk}&b={self.run.pk}"),
            (r"^/compare/case/$", f"/compare/case/?{self.comparison}&case={failed}"),
            (r"^/compare/cases/$", f"/compare/cases/?{self.comparison}"),
            (r"^/search/$", "/search/?q=a"),
        ]
        for pattern, address in replacements:
            sample = re.sub(pattern, address, sample, count=1)
        sample = sample.replace("/cases/c0/", f"/cases/{quote(case.external_id, safe='')}/")
        sample = sample.replace("/defects/c0/", f"/defects/{quote(case.external_id, safe='')}/")
        return sample.replace("sums", version.environment.slug).replace("/1.0.0/", f"/{version.version}/")

    def pages(self) -> list[str]:
        """Return the address of every page of the site for signed-in users: GET responds with a page of HTML."""
        client = Client()
        client.force_login(self.user)
        found = []
        for sample in sorted(ROLES):
            if sample in ("/login/", "/logout/") or sample.startswith(("/api/", "/password/", "/openid/")):
                continue
            response = client.get(self.address(sample))
            kind = response.headers.get("Content-Type", "")
            if response.status_code != 200 or not kind.startswith("text/html"):
                continue
            # Neither files, nor parts that pages load by htmx.
            if "Content-Disposition" not in response.headers and b"<html" in response.content:
                found.append(self.address(sample))
        return found

    def public_pages(self) -> list[str]:
        """Return the pages that need no sign-in."""
        passwords = [self.address(sample) for sample in sorted(ROLES) if sample.startswith("/password/")]
        return ["/login/", *passwords, "/password/new/x/y/"]

    def variants(self) -> list[str]:
        """Return pages that show something else with a query, in another state or after an error."""
        return [
            "/hub/?q=zebra",
            "/hub/?sort=-cases",
            f"/hub/{self.environment}/1.1.0/cases/?sort=passed&solved=some",
            f"/hub/{self.environment}/1.1.0/cases/?meta=level",
            f"/hub/{self.environment}/1.1.0/files/?file=cases.jsonl",
            f"/hub/{self.environment}/1.0.0/changes/?from=1.1.0",
            "/hub/?state=nonsense",
            f"/models/?team={self.team.slug}",
            "/models/?team=nonsense",
            f"/hub/upload/{self.draft.pk}/?file=cases.jsonl&line=1",
            f"/hub/upload/{self.draft.pk}/?file=data/image.png",
            "/docs/examples/bug-fix/environment.yaml",
            "/docs/tutorial.md",
            "/compare/",
            f"/compare/?a={self.run.pk}&b={self.run.pk}&gate=accuracy+%3E%3D+-0.01&margin=2",
            f"/compare/?a={self.run.pk}&b={self.broken.pk}",
            f"/review/?run={self.broken.pk}",
            f"/review/responses/{self.response.pk}/",
            "/preferences/?source=execution",
            f"/preferences/{self.preference.suggestion_id}/",
            f"/responses/{self.response.pk}/?view=source",
            f"/runs/new/?run={self.run.pk}",
            "/runs/new/?environment=no-such-one&model=no-such-model&budget=-1&attempts=0&other=x&role_rubric=y",
            f"/runs/{self.run.pk}/?sort=-score&q=zebra",
            f"/runs/{self.run.pk}/?status=nonsense",
            f"/runs/{self.going.pk}/",
            f"/runs/{self.broken.pk}/",
            f"/runs/{self.pair.run_id}/",
            "/no/such/page/",
        ]


def build_site(folder: Path, *, long: bool = False) -> FullSite:
    """Fill the database. With *long*, all names are as long as they may be, without a place to break them."""

    def name(text: str, length: int, end: str = "") -> str:
        return (text + "x" * length)[: length - len(end)] + end if long else text + end

    slug = name("capitals", 64)
    texts = {"slug": slug, "title": name("Capitals", 120), "summary": name("Name the capital.", 400)}
    rows = [{**row, "country": name(str(row["country"]), 200)} for row in ROWS]
    wrong = [{**row, "case": name(str(row["case"]), 200)} for row in WRONG]
    files: dict[str, Any] = {"cases.jsonl": lines(rows), "wrong.jsonl": lines(wrong), "README.md": README}
    import_bundle(bundle=write_bundle(folder / "one", files=files, **texts))
    texts["summary"] = name("Changed.", 400)
    second = import_bundle(bundle=write_bundle(folder / "two", files=files, **texts, version="1.1.0"))
    EnvironmentVersion.objects.update(certificate={"gates": GATES})
    Environment.objects.update(
        visibility=Environment.Visibility.PUBLISHED,
        held_out=True,
        featured=True,
        tags=[name("geography", 60), name("short-answers", 60)],
        license=name("CC0", 120),
    )
    user = User.objects.create_superuser(name("ann", 150))
    model, other = name("small", 120), name("a-model-with-a-rather-long-name-of-its-own", 120, "y")
    ModelEndpoint.objects.create(
        name=model,
        model=name("gpt-5-mini", 200),
        base_url=name("http://models.test/v1/", 300) if long else "",
        price_input=0.25,
        price_output=2.0,
    )
    run = stored_run(second, [model, other], name=name("Nightly run of both", 120), attempts=2, created_by=user)
    stored_outcomes(run, "pfe", model=model)
    stored_outcomes(run, "ppf", model=other)
    RunTag.objects.create(run=run, name=name("nightly", 40))
    Run.objects.filter(pk=run.pk).update(note=name("With the new prompt.", 2000))
    reason = name("It says Bergen, and the capital is Oslo.", 2000)
    Response.objects.exclude(status="passed").update(reason=reason, error_kind="")
    failed = Response.objects.filter(status="failed")[0]
    failed.messages = [
        {"role": "system", "content": "Answer."},
        {"role": "user", "content": "word" * 2000 + "\nline" * 60},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call-1", "content": "x" * 400},
        {"role": "assistant", "content": CODE},
    ]
    failed.truncated = failed.refused = True
    failed.save()
    stored_score(failed, reason=reason, detail={"expected": name("Madrid", 2000)}, execution={"status": "timeout"})
    going = stored_run(second, [model], name=name("going on", 120), status=Run.Status.RUNNING, finished_at=None)
    stored_outcomes(going, "pe-", model=model)
    Response.objects.filter(run_model__run=going, status="errored").update(reason=reason, error_kind="timeout")
    broken = stored_run(
        second, [model], name=name("broken", 120), status=Run.Status.FAILED, message=reason, config_hash="1" * 64
    )
    defect = CaseDefect.objects.create(
        case=failed.case, description=name("The target is wrong.", 1000), reported_by=user
    )
    pair, preference = _review(user, name("The reason is short.", 1000))
    return FullSite(
        user=user,
        run=run,
        going=going,
        broken=broken,
        response=failed,
        pair=pair,
        preference=preference,
        defect=defect,
        draft=_draft(folder / "draft", user, name("capitals", 200, ".zip"), name("nonsense", 400)),
        team=_team(user, name("Vision", 150), name("vision", 64), name("bob", 150)),
        model=model,
        other_model=other,
    )


def _team(user: User, title: str, slug: str, member: str) -> Team:
    """A team with quotas, which *user* manages."""
    group = Group.objects.create(name=title)
    group.user_set.add(user, User.objects.create_user(member, first_name="Bob", last_name="Baker"))
    team = Team.objects.create(group=group, slug=slug, spend_usd_per_month=250.0, storage_bytes=10**9)
    team.managers.add(user)
    TeamSpend.objects.create(team=team, month=this_month(), usd=81.5)
    return team


def _draft(folder: Path, user: User, name: str, wrong: str) -> UploadDraft:
    """A draft with a problem in two files, and a file that cannot be edited."""
    rows = [f'{{"country": "{wrong}"' + "\n", lines(ROWS)]
    write_bundle(folder, category=wrong, files={"cases.jsonl": "".join(rows), "data/image.png": b"\x89PNG\xff"})
    out = io.BytesIO()
    with open_bundle(folder) as bundle:
        bundle.write(out)
        problems = validate_bundle(bundle).problems
    return keep_draft(content=out.getvalue(), name=name, problems=problems, user=user)


def _review(user: User, critique: str) -> tuple[Pair, Preference]:
    """A pair that waits with a failed test, a tool call and a suggestion, and one that *user* has decided."""
    IssueCategory.objects.get_or_create(slug="style", defaults={"title": "Style"})
    Guideline.objects.create(title="What matters", text="# First\n\n- what is *right*\n\n`code` counts.")
    waiting, decided = waiting_pairs(2, texts=(CODE, CODE.replace("y", "z")), outcome="pf")
    message = "The code raised ZeroDivisionError: division by zero (line 2)"
    failure = {"test": "f(1) == " + "1" * 90, "expected": "1" * 90, "got": "2", "line": 3}
    ran = {"status": "exception", "passed": 2, "total": 3, "message": message, "failure": failure}
    for pair in (waiting, decided):
        pair.second.scores.update(type="python_tests", reason=message, execution=ran, detail={"code": "fence"})
        issue = NewIssue(
            response=pair.first,
            category=IssueCategory.objects.get(slug="style"),
            note=critique,
            span=find_quote(pair.first.messages, "return y"),
        )
        suggestion = suggest(pair, "first", critique=critique, issues=[issue])
        for swapped in (True, False):
            JudgeCall.objects.create(
                pair=pair,
                judge=suggestion.judge,
                fingerprint=suggestion.judge_fingerprint,
                prompt_version=suggestion.prompt_version,
                swapped=swapped,
                saw_evidence=False,
                text=critique,
                input_tokens=1200,
                cost_usd=None,
            )
    client = Client()
    client.force_login(user)
    client.post(f"/review/{decided.pk}/take/")
    client.post(f"/review/{decided.pk}/decision/", {"verdict": "a", "critique": critique})
    client.post(f"/review/{waiting.pk}/take/")
    return waiting, Preference.objects.get(source="human")
