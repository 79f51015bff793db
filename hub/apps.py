"""Django's entry for the hub app."""

from django.apps import AppConfig


class HubConfig(AppConfig):
    name = "hub"
    verbose_name = "Environments Hub"
