"""Storages of files: a folder, or a bucket of an S3-compatible service."""

from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

# Limits of one call, which is tried three times. With the defaults, a page waited for three minutes for a service that
# did not answer.
_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S, _TRIES = 5, 20, 3


class StorageSettings(TypedDict):
    """An entry of STORAGES."""

    BACKEND: str
    OPTIONS: dict[str, object]


def file_storage(
    place: str, *, variable: str, endpoint: str, region: str, access_key: str, secret_key: str
) -> StorageSettings:
    """Return the entry of STORAGES for *place*: `s3://bucket/prefix`, an absolute folder, or "" for MEDIA_ROOT.

    Without keys, the S3 client looks for credentials of the machine (a role, ~/.aws). Raises ImproperlyConfigured with
    the name of the *variable*.
    """
    if place.startswith("s3://"):
        return _bucket(place, variable, endpoint, region, access_key, secret_key)
    if place and not Path(place).is_absolute():
        raise ImproperlyConfigured(
            f"{variable}={place!r} must be s3://bucket, s3://bucket/prefix or an absolute folder."
        )
    return {
        "BACKEND": "hub.common.storage.folder.FolderStorage",
        "OPTIONS": {"location": place} if place else {},
    }


def _bucket(place: str, variable: str, endpoint: str, region: str, access_key: str, secret_key: str) -> StorageSettings:
    url = urlsplit(place)
    if not url.netloc or url.query or url.fragment or "@" in url.netloc:
        raise ImproperlyConfigured(f"{variable} must be s3://bucket or s3://bucket/prefix.")
    if find_spec("storages") is None or find_spec("boto3") is None:
        raise ImproperlyConfigured(f"{variable} names a bucket, which needs the extra s3: pip install 'llm-eval[s3]'.")
    from botocore.config import Config  # an extra

    limits = Config(
        connect_timeout=_CONNECT_TIMEOUT_S, read_timeout=_READ_TIMEOUT_S, retries={"total_max_attempts": _TRIES}
    )
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": url.netloc,
            "location": url.path.strip("/"),
            "endpoint_url": endpoint or None,
            "region_name": region or None,
            "access_key": access_key or None,
            "secret_key": secret_key or None,
            "default_acl": None,
            "file_overwrite": True,  # files are named by their content
            "querystring_auth": True,
            "client_config": limits,
        },
    }
