"""Addresses of the pages of preferences, at the root of the site."""

from django.urls import path

from preferences.web import views

app_name = "preferences"
urlpatterns = [
    path("preferences/", views.preferences, name="list"),
    path("preferences/export/", views.export, name="export"),
    path("preferences/<int:pk>/", views.preference, name="preference"),
    path("agreement/", views.agreement, name="agreement"),
    path("ranking/", views.ranking, name="ranking"),
]
