"""Runs of environments with images in their messages."""

from pathlib import Path

import pytest
from django.test import Client

from runs.models import Response
from tests.endpoint import completion, endpoint
from tests.hub.datasets.test_images import PNG, URL
from tests.members import member
from tests.runs.capitals import config_text, start

pytestmark = pytest.mark.django_db(transaction=True)
MANIFEST = """\
spec: 1
slug: flags
version: 1.0.0
title: Flags
summary: Name the country of a flag.
category: domain-knowledge
dataset:
  path: cases.csv
  fields:
    input:
      - role: user
        content:
          - {type: text, text: "Whose flag is this?"}
          - {type: image_url, image_url: {url: "{{ id }}.png"}}
scoring: {rules: [{type: exact_match}]}
"""


def test_image_of_the_bundle_is_sent_to_the_model_and_shown(tmp_path: Path, client: Client) -> None:
    folder = tmp_path / "flags"
    folder.mkdir()
    (folder / "environment.yaml").write_text(MANIFEST)
    (folder / "cases.csv").write_text("id,target\npe,Peru\n")
    (folder / "pe.png").write_bytes(PNG)
    with endpoint(lambda request, _: completion("Peru")) as server:
        run, _ = start(tmp_path, config_text(server.url, environments=[{"path": "flags"}]))
    content = [{"type": "text", "text": "Whose flag is this?"}, {"type": "image_url", "image_url": {"url": URL}}]
    assert server.requests[0]["messages"] == [{"role": "user", "content": content}]
    response = Response.objects.get(run_environment__run=run)
    assert (response.status, response.messages[0]["content"]) == ("passed", content)
    client.force_login(member("Runner", "Curator"))
    for page in (f"/responses/{response.pk}/", "/hub/flags/1.0.0/cases/pe/"):
        shown = client.get(page).content.decode()
        assert f'<img src="{URL}" alt="Image 1 of message 0" loading="lazy">' in shown, page
