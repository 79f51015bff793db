"""App configuration."""

from django.apps import AppConfig


class LlmevalSiteConfig(AppConfig):
    name = "llmeval_site"
    verbose_name = "LLM-Eval"
