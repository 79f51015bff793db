"""Snapshots in a folder and in a bucket: stored once per content, checked when they are opened, removed by episode."""

import io
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, cast

import boto3
import pytest
from django.core.files.storage import storages
from moto.server import ThreadedMotoServer
from pytest_django import Settings

from llmeval_site.configuration.storages import file_storage
from sandbox.workspaces.base import BoxSpec, Handle, SnapshotFacts, WorkspaceEngine
from sandbox.workspaces.snapshots import (
    SnapshotMissing,
    list_snapshot_folders,
    open_saved,
    remove_snapshots,
    save_snapshot,
)

BOX = Handle(host="h", id="b", generation="g", image="i")


class Boxes:
    """Engine whose boxes have the files *content*; only what snapshots need."""

    content = b""

    def snapshot(self, handle: Handle, workdir: str, target: IO[bytes], max_mb: int) -> SnapshotFacts:
        target.write(self.content)
        return SnapshotFacts(digest=sha256(self.content).hexdigest(), size=len(self.content), processes=0)

    def open_snapshot(self, spec: BoxSpec, source: IO[bytes], max_mb: int) -> Handle:
        self.content = source.read()
        return BOX


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path, settings: Settings) -> Iterator[str]:
    server, address, found = None, "", str(tmp_path / "snapshots")
    if request.param == "bucket":
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
        server.start()
        host, port = server.get_host_and_port()
        address, found = f"http://{host}:{port}", "s3://boxes/team"
        keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
        client: Any = boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys)
        client.create_bucket(Bucket="boxes")
    stored = file_storage(
        found, variable="LLMEVAL_SNAPSHOTS", endpoint=address, region="us-east-1", access_key="k", secret_key="s"
    )
    settings.STORAGES = {**settings.STORAGES, "snapshots": stored}
    yield request.param
    if server is not None:
        server.stop()


@pytest.mark.parametrize("size", [3, 9_000_000])
def test_snapshots_are_stored_opened_listed_and_removed(place: str, size: int) -> None:
    boxes = Boxes()
    engine = cast(WorkspaceEngine, boxes)
    boxes.content = content = bytes(range(256)) * (size // 256 + 1)
    digests = {save_snapshot(engine, BOX, "/app", folder, 64).digest for folder in ("runs/1", "runs/1", "runs/2")}
    (digest,) = digests
    assert sorted(list_snapshot_folders("runs")) == ["runs/1", "runs/2"]
    boxes.content = b""
    assert open_saved(engine, BoxSpec(image="i"), "runs/1", digest, 64) == BOX
    assert boxes.content == content
    boxes.content = b"another"
    save_snapshot(engine, BOX, "/app", "runs/1", 64)
    remove_snapshots("runs/1", digest)
    with pytest.raises(SnapshotMissing, match="not in the storage"):
        open_saved(engine, BoxSpec(image="i"), "runs/1", digest, 64)
    storages["snapshots"].delete(f"runs/2/{digest}")
    storages["snapshots"].save(f"runs/2/{digest}", io.BytesIO(b"changed"))
    with pytest.raises(SnapshotMissing, match="content has changed"):
        open_saved(engine, BoxSpec(image="i"), "runs/2", digest, 64)
    for folder in ("runs/1", "runs/2", "runs/2"):
        remove_snapshots(folder)
    assert list(list_snapshot_folders("runs")) == []
