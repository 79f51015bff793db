"""The generator of the OpenAPI document."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import spectacular_settings

from runs.exports import FORMATS, ROLLOUT_FORMATS


def test_format_of_an_export_has_choices_and_may_be_left_out() -> None:
    paths = spectacular_settings.DEFAULT_GENERATOR_CLASS().get_schema(None, True)["paths"]
    for kind, formats in (("failures", FORMATS), ("rollouts", ROLLOUT_FORMATS)):
        [found] = [
            item for item in paths[f"/api/v1/runs/{{id}}/{kind}"]["get"]["parameters"] if item["name"] == "format"
        ]
        assert set(found["schema"]["enum"]) == set(formats) and not found.get("required")


def test_document_is_generated_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    started, finish = threading.Event(), threading.Event()

    def generate(*_: object) -> dict[str, object]:
        assert not started.is_set() or finish.is_set(), "another thread is not done yet"
        started.set()
        finish.wait(60)
        return {}

    monkeypatch.setattr(SchemaGenerator, "get_schema", generate)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(spectacular_settings.DEFAULT_GENERATOR_CLASS().get_schema, None, True)
        started.wait(60)
        second = threads.submit(spectacular_settings.DEFAULT_GENERATOR_CLASS().get_schema, None, True)
        threading.Timer(0.2, finish.set).start()
        assert (first.result(60), second.result(60)) == ({}, {})
