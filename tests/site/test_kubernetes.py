"""The manifests in deploy/kubernetes: valid by the schemas of Kubernetes, restricted, and complete."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.conf import settings

FOLDER: Path = settings.BASE_DIR / "deploy" / "kubernetes"
FILES = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml")


def resources(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


PODS = [
    (resource["metadata"]["name"], resource["spec"]["template"]["spec"])
    for path in FILES
    for resource in resources(path)
    if resource["kind"] in ("Deployment", "Job")
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_resources_are_valid_by_the_schema_of_kubernetes(path: Path) -> None:
    for resource in resources(path):
        kubernetes_validate.validate(resource, "1.31", strict=True)


def test_kustomization_lists_every_file_but_the_example_of_the_secret() -> None:
    (kustomization,) = resources(FOLDER / "kustomization.yaml")
    assert set(kustomization["resources"]) == {path.name for path in FILES} - {"secret.example.yaml"}
    images = {container["image"] for _, pod in PODS for container in containers(pod)}
    assert {image["name"] for image in kustomization["images"]} == images


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", []), *pod["containers"]]


@pytest.mark.parametrize(("name", "pod"), PODS)
def test_pods_meet_the_restricted_standard_and_mount_only_their_volumes(name: str, pod: dict[str, Any]) -> None:
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in containers(pod):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        # The sandbox gets neither settings nor secrets, nor the archives with expected answers.
        if container["name"] == "sandbox":
            assert "env" not in container and "envFrom" not in container
            assert {mount["name"] for mount in container["volumeMounts"]} == {"sandbox", "sandbox-tmp"}


def test_settings_of_the_manifests_are_documented() -> None:
    documented = (settings.BASE_DIR / "docs" / "settings.md").read_text(encoding="utf-8")
    (config,) = resources(FOLDER / "config.yaml")
    (secret,) = resources(FOLDER / "secret.example.yaml")
    names = {*config["data"], *secret["stringData"]} - {"OPENAI_API_KEY"}
    assert {name for name in names if f"`{name}`" not in documented} == set()


def test_every_queue_has_a_worker_and_periodic_tasks_one_beat() -> None:
    commands = {name: pod["containers"][0]["command"] for name, pod in PODS}
    queues = {
        queue
        for command in commands.values()
        if "--queues" in command
        for queue in command[command.index("--queues") + 1].split(",")
    }
    assert queues == set(settings.CELERY_TASK_QUEUES)
    assert [name for name, command in commands.items() if "beat" in command] == ["llmeval-beat"]


def test_pods_that_wait_for_the_database_report_why() -> None:
    waiting = [container for _, pod in PODS for container in containers(pod) if container["name"] == "wait-for-setup"]
    assert len(waiting) == 4
    command = waiting[0]["command"]
    assert all(container["command"] == command for container in waiting)
    with tempfile.TemporaryDirectory() as folder:  # a database that cannot be reached, and a stand-in for `sleep`
        Path(folder, "sleep").write_text("#!/bin/sh\nkill $PPID\n", encoding="ascii")
        Path(folder, "sleep").chmod(0o755)
        done = subprocess.run(
            command,
            cwd=settings.BASE_DIR,
            env={
                "PATH": f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
                "LLMEVAL_VAR": folder,
                "DATABASE_URL": "postgres://llmeval@127.0.0.1:1/llmeval",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert "The database cannot be reached" in done.stderr
    assert done.stdout == "Waiting for the job llmeval-setup\n"


def test_site_stops_once_no_new_connections_are_sent_to_it() -> None:
    (pod,) = [pod for name, pod in PODS if name == "llmeval-web"]
    (_, seconds) = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    answering = 30  # seconds for which gunicorn waits for requests in progress
    assert int(seconds) > 0 and pod["terminationGracePeriodSeconds"] > int(seconds) + answering
