"""The style guide: every component of the pages with sample data. Available in debug mode only."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

STATUSES = ["passed", "failed", "errored", "unscored", "truncated", "running", "queued", "completed", "interrupted"]
CODE = "def f(x):\n    return x + 1  # one more"
DIFF = [("place", "@@ -1,2 +1,2 @@"), ("same", "slug: sums"), ("remove", "version: 1.0.0"), ("add", "version: 1.1.0")]
TURNS = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "What is 2 + 2?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 2}'}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "4"},
    {"role": "assistant", "content": "4"},
]


@require_safe
def styleguide(request: HttpRequest) -> HttpResponse:
    """Show every component once."""
    context = {"statuses": STATUSES, "diff": DIFF, "turns": TURNS, "code": CODE, "interval_example": [0.739, 0.919]}
    return render(request, "site/styleguide.html", context)
