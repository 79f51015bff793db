"""URLs of the review pages."""

from django.urls import path

from review.web import views

app_name = "review"
urlpatterns = [
    path("", views.next_pair, name="next"),
    path("undo/", views.undo, name="undo"),
    path("runs/<int:pk>/", views.of_run, name="of_run"),
    path("responses/<int:pk>/", views.of_response, name="of_response"),
    path("preferences/<int:pk>/calls/", views.judge_calls, name="judge_calls"),
    path("<int:pk>/", views.pair, name="pair"),
    path("<int:pk>/take/", views.take, name="take"),
    path("<int:pk>/decision/", views.decide, name="decide"),
    path("<int:pk>/skip/", views.skip, name="skip"),
    path("<int:pk>/draft/", views.draft, name="draft"),
]
