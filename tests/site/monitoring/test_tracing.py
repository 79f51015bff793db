"""Traces, received by a collector of the tests: the protocol's own messages over real HTTP."""

import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from llmeval_site.tracing import start_tracing
from tests.endpoint import completion, endpoint
from tests.hub.bundle_files import write_bundle
from tests.processes import wait_until
from tests.site.server.web_server import environment_of, web_server


@dataclass
class Collector:
    """Running collector and the spans that it received."""

    url: str
    spans: list[Span] = field(default_factory=list)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


@contextmanager
def collector() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    received.spans.extend(scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield received
        server.shutdown()


def values(span: Span) -> dict[str, object]:
    return {item.key: getattr(item.value, str(item.value.WhichOneof("value"))) for item in span.attributes}


@pytest.mark.exhaustive
def test_run_sends_a_trace_for_each_response_linked_to_the_run(tmp_path: Path) -> None:
    write_bundle(tmp_path / "capitals")
    with collector() as received, endpoint(lambda *_: completion("Paris")) as model:
        config = {
            "name": "traced",
            "environments": [{"path": "capitals"}],
            "models": [{"name": "m", "provider": "openai", "model": "m", "base_url": model.url}],
            "tracking": {"mlflow": False},
        }
        (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
        environment = environment_of(tmp_path, {"LLMEVAL_TRACES": received.url, "OPENAI_API_KEY": "x"})
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "eval", "--config", "run.yaml"]
        subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True)
        (run,) = received.named("run")
        responses, calls = received.named("response"), received.named("chat m")
    assert values(run)["llmeval.run_name"] == "traced"
    assert values(run)["llmeval.status"] == "completed"
    assert {values(span)["llmeval.status"] for span in responses} == {"passed", "failed"}
    assert {values(span)["llmeval.environment"] for span in responses} == {"capitals"}
    assert len({span.trace_id for span in responses}) == len(responses) == len(calls) == 3
    assert {span.links[0].span_id for span in responses} == {run.span_id}
    assert {span.parent_span_id for span in calls} == {span.span_id for span in responses}
    assert values(calls[0])["gen_ai.usage.output_tokens"] == 5
    assert all(span.status.code != Status.STATUS_CODE_ERROR for span in received.spans)
    assert "Paris" not in str(received.spans)


@pytest.mark.exhaustive
def test_requests_to_the_site_are_traced_except_health_checks(tmp_path: Path) -> None:
    with collector() as received:
        environment = environment_of(tmp_path, {"LLMEVAL_TRACES": received.url, "OTEL_BSP_SCHEDULE_DELAY": "100"})
        migrate = [sys.executable, str(settings.BASE_DIR / "manage.py"), "migrate", "-v", "0"]
        subprocess.run(migrate, env=environment, cwd=tmp_path, check=True)
        with web_server(tmp_path, environment) as port:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz").close()
            urllib.request.urlopen(f"http://127.0.0.1:{port}/login/").close()
            wait_until(lambda: bool(received.named("GET login/")))
    assert [span.name for span in received.spans if span.kind == Span.SPAN_KIND_SERVER] == ["GET login/"]


@pytest.mark.exhaustive
def test_unreachable_collector_does_not_fail_a_run(tmp_path: Path) -> None:
    environment = environment_of(tmp_path, {"LLMEVAL_TRACES": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"})
    arguments = ["eval", "--env", "word-problems", "--model", "demo", "--limit", "2"]
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments]
    done = subprocess.run(command, env=environment, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "trace_exporter" in done.stderr and "Traceback" not in done.stderr


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.celery", None)
    with pytest.raises(ImproperlyConfigured, match=r"LLMEVAL_TRACES needs the extra traces .*requirements-traces\.txt"):
        start_tracing("http://127.0.0.1:4318")
