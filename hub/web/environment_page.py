"""Context that all pages of an environment share: its state, and what the user may do."""

from typing import Literal

from django.contrib.auth.models import AnonymousUser, User

from hub.gates.certificates import failed_gates
from hub.models import Environment, EnvironmentVersion
from hub.selectors import is_curator, is_newer, list_open_defects, may_see_content
from hub.services import why_not_publishable
from hub.teams.membership import list_targets

Tab = Literal["overview", "cases", "files", "versions", "results", "certificate"]


def page_context(user: User | AnonymousUser, version: EnvironmentVersion, tab: Tab) -> dict[str, object]:
    """Return the context of hub/environment_page.html for the page *tab* of *version*.

    `content` says whether the user may see cases and files, `publish_problem` why the environment cannot be published,
    `next_latest` whether the version becomes the latest one when it has passed its gates, and `failed` the gates that
    prevent it.
    """
    environment = version.environment
    curator = is_curator(user)
    latest = version.pk == environment.latest_id
    published = environment.visibility == Environment.Visibility.PUBLISHED
    unpublished = latest and not published
    newer = not latest and is_newer(version, environment.latest)
    failed = failed_gates(version.certificate) if newer and version.certificate else []
    return {
        "environment": environment,
        "version": version,
        "tab": tab,
        "curator": curator,
        "team_targets": list_targets(user, environment, environment.owner_id),
        "content": may_see_content(user, environment),
        "unpublished": unpublished,
        "publish_problem": why_not_publishable(environment) if unpublished else "",
        "next_latest": newer and not failed,
        "failed": failed,
        "retirable": latest and curator and published,
        "open_defects": list_open_defects(user, version).count() if curator else 0,
    }
