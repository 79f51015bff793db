"""Restore the key order of manifests and cases, which PostgreSQL's type jsonb had replaced by its own.

The order is read from the files of each version's bundle, which is stored as uploaded. Objects are only reordered, so
no value can change. This file uses no code of the product, so that later changes of the product do not affect it.
"""

import csv
import gzip
import io
import json
import zipfile

import yaml
from django.db import migrations

MANIFEST = "environment.yaml"
CASE_FIELDS = ("id", "input", "target", "choices", "files", "metadata", "row")
CHUNK = 500


def restore_key_order(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    Case = apps.get_model("hub", "Case")
    EnvironmentVersion = apps.get_model("hub", "EnvironmentVersion")
    for version in EnvironmentVersion.objects.iterator():
        if not version.archive or not version.archive.storage.exists(version.archive.name):
            continue
        try:
            order = KeyOrder()
            with version.archive.open("rb") as file, zipfile.ZipFile(file) as archive:
                read_bundle(archive, order)
        except Exception as error:  # a bundle of any release; nothing is lost if it cannot be read
            print(f"hub: the cases of {version.digest[:12]} keep their order of keys; its bundle cannot be read: {error}")
            continue
        version.manifest = order.restore(version.manifest)
        version.save(update_fields=["manifest"])
        changed = []
        for case in Case.objects.filter(version=version).iterator(chunk_size=CHUNK):
            data = {name: case.data[name] for name in CASE_FIELDS if name in case.data}
            case.data = order.restore({**data, **case.data}, top=False)
            changed.append(case)
            if len(changed) == CHUNK:
                Case.objects.bulk_update(changed, ["data"])
                changed = []
        Case.objects.bulk_update(changed, ["data"])


class KeyOrder:
    """Order of keys in the objects of a bundle.

    An object that is in the bundle gets its keys' order there, another one that of an object with the same keys, all
    others that in which the bundle first mentions their keys.
    """

    def __init__(self):
        self._of_object = {}
        self._of_keys = {}
        self._first_seen = {}

    def learn(self, value):
        if isinstance(value, list):
            for item in value:
                self.learn(item)
        elif isinstance(value, dict):
            keys = self.learn_keys(value)
            self._of_object.setdefault(hash(canonical(value)), keys)
            for item in value.values():
                self.learn(item)

    def learn_keys(self, keys):
        keys = tuple(str(key) for key in keys)
        for key in keys:
            self._first_seen.setdefault(key, len(self._first_seen))
        return self._of_keys.setdefault(frozenset(keys), {}).setdefault(keys, keys)

    def restore(self, value, top=True):
        """Return *value* with its objects reordered; the outermost object only if *top*."""
        if isinstance(value, list):
            return [self.restore(item) for item in value]
        if not isinstance(value, dict):
            return value
        keys = self._keys(value) if top else list(value)
        return {key: self.restore(value[key]) for key in keys}

    def _keys(self, value):
        exact = self._of_object.get(hash(canonical(value)))
        if exact is not None and set(exact) == set(value):
            return exact
        similar = self._of_keys.get(frozenset(value))
        if similar:
            return next(iter(similar))
        return sorted(value, key=lambda key: self._first_seen.get(key, len(self._first_seen)))


def canonical(value):
    return json.dumps(value, sort_keys=True, default=str)


def read_bundle(archive, order):
    """Learn the order of keys in the manifest, then in the data files."""
    names = archive.namelist()
    root = min((name for name in names if name.rpartition("/")[2] == MANIFEST), key=len)
    order.learn(yaml.safe_load(archive.read(root).decode("utf-8-sig")))
    for name in sorted(names):
        read_rows(name.removesuffix(".gz"), lambda: archive_file(archive, name), order)


def archive_file(archive, name):
    file = archive.open(name)
    return gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file


def read_rows(name, open_file, order):
    if name.endswith(".jsonl"):
        for line in open_file():
            if line.strip():
                order.learn(json.loads(line.decode("utf-8-sig")))
    elif name.endswith(".json"):
        decoder, text, at = json.JSONDecoder(), open_file().read().decode("utf-8-sig").strip(), 0
        while at < len(text):  # an array, or objects in sequence
            value, at = decoder.raw_decode(text, at)
            order.learn(value)
            at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n,"))
    elif name.endswith(".csv"):
        header = next(csv.reader(io.TextIOWrapper(open_file(), "utf-8-sig", newline="")), None)
        order.learn_keys(header or [])
    elif name.endswith(".parquet"):
        import pyarrow.parquet

        order.learn_keys(pyarrow.parquet.read_schema(io.BytesIO(open_file().read())).names)


class Migration(migrations.Migration):

    dependencies = [
        ('hub', '0003_ordered_json'),
    ]

    operations = [
        migrations.RunPython(restore_key_order, migrations.RunPython.noop),
    ]
