"""Storage of files in a local or shared folder, written atomically; temporary errors of storages."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.core.files.storage import FileSystemStorage
from django.utils.deconstruct import deconstructible


@deconstructible(path="hub.common.storage.folder.FolderStorage")
class FolderStorage(FileSystemStorage):
    """Folder in which a file appears complete or not at all, for files that are named by their content.

    Saving under the name of an existing file replaces it.
    """

    def save(self, name: str | None, content: IO[bytes], max_length: int | None = None) -> str:
        name = name or str(content.name)
        with written_atomically(Path(self.path(name))) as file:
            shutil.copyfileobj(content, file)
        return name


@contextmanager
def written_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that becomes *path* when the block ends without an error. Creates missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".partial-", delete=False) as file:
        scratch = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            scratch.replace(path)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise


def is_temporary(error: Exception) -> bool:
    """Return whether *error* comes from a network, a disk or a service, so that a later attempt may succeed."""
    if isinstance(error, OSError):
        return not isinstance(error, PermissionError)
    try:
        from botocore.exceptions import ClientError, ConnectionError, HTTPClientError
    except ImportError:  # the extra s3 is not installed
        return False
    if isinstance(error, ClientError):
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        return status >= 500 or status in (408, 429)
    return isinstance(error, ConnectionError | HTTPClientError)
