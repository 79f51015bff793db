"""App configuration."""

from django.apps import AppConfig
from django.conf import settings


class LlmevalSiteConfig(AppConfig):
    name = "llmeval_site"
    verbose_name = "LLM-Eval"

    def ready(self) -> None:
        from llmeval_site.webhooks.deliveries import record_run_end  # models can be imported only now
        from runs.transitions import on_end

        on_end(record_run_end)
        if settings.TRACES_URL:
            from llmeval_site.tracing import start_tracing  # needs the extra traces

            start_tracing(settings.TRACES_URL)
