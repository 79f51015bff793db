"""Cases of a bundle that has no problems, kept in a temporary file until they are stored."""

import json
import tempfile
import weakref
from collections.abc import Iterator
from typing import NamedTuple

from hub.bundles.cases import PreparedCase
from hub.bundles.loader import Bundle
from hub.bundles.validation import bundle_problems
from hub.manifest.problems import BundleError
from hub.protocols.messages import JSON


class CheckedCase(NamedTuple):
    """A case as it is stored."""

    position: int
    external_id: str
    data: dict[str, JSON]
    input_digest: str
    scoring_digest: str


class CheckedCases:
    """The cases of the bundle with `digest`, in order. Reading, rendering and digesting them is done.

    Its file is deleted by `close`, or when the object is no longer used.
    """

    def __init__(self, bundle: Bundle) -> None:
        """Read the cases of *bundle*. Raises BundleError with every problem of the bundle."""
        self.digest = bundle.digest
        self.count = 0
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed by `close`
        self.close = weakref.finalize(self, self._file.close)
        if problems := bundle_problems(bundle, on_case=self._add):
            raise BundleError(problems)

    def _add(self, item: PreparedCase) -> None:
        case = CheckedCase(item.position, item.case.id, item.case.to_json(), item.input_digest, item.scoring_digest)
        self._file.write(json.dumps(case, separators=(",", ":")) + "\n")
        self.count += 1

    def __iter__(self) -> Iterator[CheckedCase]:
        self._file.seek(0)
        return (CheckedCase(*json.loads(line)) for line in self._file)

    def ids(self) -> list[str]:
        """Return the ids of all cases."""
        return [case.external_id for case in self]
