"""Function for tests that applies a rule with options to an answer and returns the verdict."""

from collections.abc import Mapping
from typing import Any

from hub.harnesses.base import Services
from hub.protocols.calls import CallKey
from hub.protocols.cases import CaseData
from hub.protocols.messages import Message
from hub.scorers.base import Submission, Verdict
from hub.scorers.registry import SCORERS
from hub.templating import templates


async def judge(
    rule: str,
    text: str,
    *,
    case: Mapping[str, Any] | None = None,
    state: Any = None,
    reward: float | None = None,
    messages: list[Message] | None = None,
    files: Mapping[str, str] | None = None,
    pool: Any = None,
    isolated: bool = True,
    **options: Any,
) -> Verdict:
    """The verdict of a rule of type *rule* with *options*, defaults and templates rendered as an episode does."""
    scorer = SCORERS[rule]
    data = CaseData(**{"id": "c", **(case or {})})
    defaults = {
        name: field.default
        for name, field in scorer.Options.model_fields.items()
        if isinstance(field.default, str) and "{{" in field.default
    }
    rendered = templates.render({**defaults, **options}, data.variables())
    submission = Submission(
        case=data,
        key=CallKey(purpose="answer", environment="e", case="c", model="a"),
        rule=rule,
        text=text,
        messages=messages or [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}],
        state=state,
        reward=reward,
        files={path: source.encode() for path, source in (files or {}).items()},
    )
    return await scorer.score(
        scorer.Options.model_validate(rendered), submission, Services(pool=pool, isolated=isolated)
    )
