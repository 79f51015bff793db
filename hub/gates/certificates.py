"""Certificate: the results of the gates for one version of an environment, stored as JSON."""

from typing import Literal, TypedDict

Status = Literal["passed", "failed", "not_run"]


class GateFailure(TypedDict):
    """One failure of a gate. `case` is the id of the case."""

    case: str
    message: str


class GateResult(TypedDict):
    """Result of one gate. `checked` and `failed` count all episodes or cases; `failures` lists the first of them."""

    name: str
    what: str
    status: Status
    checked: int
    failed: int
    failures: list[GateFailure]
    note: str


class SandboxDescription(TypedDict):
    """Sandbox that the gates ran in."""

    tier: str
    backend: str


class Certificate(TypedDict):
    """Results of all gates. `digest` is that of the bundle; `date` is the day in UTC as YYYY-MM-DD."""

    digest: str
    environment: str
    cases: int
    gates: list[GateResult]
    sandbox: SandboxDescription | None
    versions: dict[str, str]
    date: str


def without_failures(certificate: Certificate) -> Certificate:
    """Return *certificate* without failures and notes, which name cases and targets that not everybody may see."""
    gates: list[GateResult] = [{**gate, "failures": [], "note": ""} for gate in certificate["gates"]]
    return {**certificate, "gates": gates}


def failed_gates(certificate: Certificate) -> list[str]:
    """Return the names of the gates that failed."""
    return [gate["name"] for gate in certificate["gates"] if gate["status"] == "failed"]
