"""App configuration."""

from django.apps import AppConfig
from django.conf import settings


class LlmevalSiteConfig(AppConfig):
    name = "llmeval_site"
    verbose_name = "LLM-Eval"

    def ready(self) -> None:
        if settings.TRACES_URL:
            from llmeval_site.tracing import start_tracing  # needs the extra traces

            start_tracing(settings.TRACES_URL)
