"""The report as JUnit XML, which CI systems read: a suite for each environment and model, a test for each response."""

from typing import BinaryIO
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

from hub.common.output.foreign_text import clean
from runs.models import Response, Run
from runs.reports import formats
from runs.results.figures import CellResult
from runs.results.stored import get_results

_ANSWER = 2000  # characters of an answer
_REASON = 500  # characters of a message; the element contains the whole reason
_ELEMENTS = {"failed": "failure", "errored": "error", "unscored": "skipped"}
_FIELDS = ("attempt", "status", "reason", "error_kind", "text", "latency_ms", "case__external_id")


def write_junit(run: Run, out: BinaryIO) -> None:
    """Write the responses of *run* as tests: failed is a failure, errored an error, unscored skipped.

    Quarantined cases are skipped. Memory does not grow with the run.
    """
    xml = XMLGenerator(out, encoding="utf-8", short_empty_elements=True)
    xml.startDocument()
    _start(xml, "testsuites", {"name": clean(run.name), "time": f"{run.seconds:.3f}"})
    for cell in get_results(run):
        _write_suite(xml, run, cell)
    xml.endElement("testsuites")
    xml.endDocument()
    out.write(b"\n")


def _write_suite(xml: XMLGenerator, run: Run, cell: CellResult) -> None:
    of_cell = Response.objects.filter(run_environment=cell.run_environment, run_model=cell.run_model)
    quarantined = set(cell.figures.quarantined_cases)
    left_out = of_cell.filter(case_id__in=quarantined).count()
    name = clean(f"{cell.environment} / {cell.model}")
    attributes = {
        "name": name,
        "tests": str(cell.responses + left_out),
        "failures": str(cell.statuses["failed"]),
        "errors": str(cell.statuses["errored"]),
        "skipped": str(cell.statuses["unscored"] + left_out),
    }
    if run.started_at is not None:
        attributes["timestamp"] = f"{run.started_at:%Y-%m-%dT%H:%M:%S}"
    _start(xml, "testsuite", attributes)
    several = cell.figures.attempts > 1
    rows = of_cell.select_related("case").only(*_FIELDS).order_by("case__position", "attempt")
    for response in rows.iterator(chunk_size=200):
        case = clean(response.case.external_id)
        test = {
            "classname": clean(f"{cell.slug}.{cell.model}"),
            "name": f"{case}, attempt {response.attempt}" if several else case,
        }
        if response.latency_ms is not None:
            test["time"] = f"{response.latency_ms / 1000:.3f}"
        _start(xml, "testcase", test)
        if response.case_id in quarantined:
            _write_element(xml, "skipped", "the case is quarantined")
        elif response.status in _ELEMENTS:
            _write_outcome(xml, response)
        xml.endElement("testcase")
    xml.endElement("testsuite")


def _write_outcome(xml: XMLGenerator, response: Response) -> None:
    reason = clean(response.reason, lines=True) or "no reason was given"
    text = reason
    if response.text:
        text += f"\n\nAnswer:\n{formats.cut(clean(response.text, lines=True), _ANSWER)}"
    kind = response.error_kind or response.status
    _write_element(xml, _ELEMENTS[response.status], formats.cut(clean(reason), _REASON), text, kind)


def _write_element(xml: XMLGenerator, name: str, message: str, text: str = "", kind: str = "") -> None:
    _start(xml, name, {"message": message, **({"type": kind} if kind and name != "skipped" else {})})
    xml.characters(text)
    xml.endElement(name)


def _start(xml: XMLGenerator, name: str, attributes: dict[str, str]) -> None:
    xml.startElement(name, AttributesImpl(attributes))
