"""Configured keys are masked in every form in which an endpoint may send them back."""

import base64
import json
import logging
import sys
from urllib.parse import quote

import pytest
from django.conf import settings

from hub.common.masking import MASK, MaskingFormatter, mask
from llmeval_site.configuration.variables import EnvironmentVariables

KEY = 'sk-proj/Ab+12"=x yz'


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ENV", EnvironmentVariables({"OPENAI_API_KEY": f" {KEY}\n", "VLLM_API_KEY": "EMPTY"}))


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        f"Bearer {KEY}",
        quote(KEY, safe=""),
        json.dumps(KEY),
        KEY.replace("/", "\\/"),
        *(base64.b64encode(f"{user}:{KEY}:{'x' * n}".encode()).decode() for user in ("", "a", "ab") for n in range(3)),
        base64.urlsafe_b64encode(f"user:{KEY}".encode()).decode(),
        base64.b64encode(KEY.encode()).decode(),
    ],
)
def test_key_is_masked_in_likely_encodings(form: str) -> None:
    masked = mask(f"refused: {form} is wrong")
    assert MASK in masked
    for part in (KEY, "sk-proj", quote("sk-proj/Ab+12", safe="")):
        assert part not in masked


def test_keys_are_masked_at_any_depth_and_other_values_are_kept() -> None:
    value = {KEY: [KEY, 1, None, {"a": (f"x{KEY}",)}], "b": True}
    assert mask(value) == {MASK: [MASK, 1, None, {"a": (f"x{MASK}",)}], "b": True}


def test_placeholders_and_partial_echoes_stay_as_they_are() -> None:
    text = "The list is EMPTY. Incorrect API key provided: sk-pr...yz."
    assert mask(text) == text


def test_variables_that_are_not_configured_as_keys_are_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ENV", EnvironmentVariables({"LANG": "en_US.UTF-8"}))
    assert mask("en_US.UTF-8") == "en_US.UTF-8"


def test_logged_messages_and_tracebacks_are_masked() -> None:
    try:
        raise ValueError(f"no such key: {KEY}")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 1, "asked with %s", (KEY,), sys.exc_info())
    text = MaskingFormatter("{message}", style="{").format(record)
    assert text.count(MASK) == 2 and "sk-proj" not in text


def test_both_log_formats_of_this_installation_mask_keys() -> None:
    classes = {name: formatter["()"] for name, formatter in settings.LOGGING["formatters"].items()}
    assert classes["text"].endswith(".MaskingFormatter") and classes["json"].endswith(".MaskingJSONFormatter")
