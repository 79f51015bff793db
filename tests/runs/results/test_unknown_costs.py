"""Migration of costs that earlier versions stored as 0 although they were unknown."""

from importlib import import_module

import pytest
from django.apps import apps

from hub.models import Case
from runs.models import Response, Run
from tests.factories import stored_response, stored_run, stored_version

pytestmark = pytest.mark.django_db
PRICE = {"input": 1.0, "output": 2.0}


@pytest.mark.parametrize(
    ("provider", "price", "fields", "unknown"),
    [
        ("openai", None, {"latency_ms": 5.0, "input_tokens": 10, "output_tokens": 5}, True),
        ("openai", PRICE, {"latency_ms": 5.0}, True),
        ("openai", PRICE, {"latency_ms": 5.0, "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.2}, False),
        ("openai", {"input": 0, "output": 0}, {"latency_ms": 5.0}, False),
        ("openai", None, {"latency_ms": None}, False),
        ("replay", None, {"latency_ms": None}, False),
    ],
)
def test_migration_clears_costs_of_models_without_a_price(
    provider: str, price: dict[str, float] | None, fields: dict[str, float], unknown: bool
) -> None:
    run = stored_run(stored_version(cases=1), provider=provider, price=price, cost_usd=0.3)
    stored_response(run, Case.objects.get(), **fields)
    import_module("runs.migrations.0011_unknown_costs").forget_costs_that_were_never_known(apps, None)
    assert (Response.objects.get().cost_usd is None) == (Run.objects.get().cost_usd is None) == unknown
