"""Settings of Django REST Framework, and of the OpenAPI schema that drf-spectacular makes of it."""

REST_FRAMEWORK: dict[str, object] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "llmeval_site.accounts.tokens.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PARSER_CLASSES": [
        "hub.common.rest.parsers.BoundedJSONParser",
        "rest_framework.parsers.FormParser",
        "rest_framework.parsers.MultiPartParser",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_VERSIONING_CLASS": None,
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "hub.common.rest.negotiation.ContentNegotiation",
    "DEFAULT_PAGINATION_CLASS": "hub.common.rest.pagination.CursorPagination",
    "PAGE_SIZE": 50,
    "EXCEPTION_HANDLER": "hub.common.rest.errors.error_response",
    # Exports use `?format=` for their own formats; all other responses are JSON.
    "URL_FORMAT_OVERRIDE": None,
    "DEFAULT_THROTTLE_CLASSES": [
        "rest_framework.throttling.UserRateThrottle",
        "hub.common.rest.throttling.WriteThrottle",
    ],
    # For each user, client or mail address, and for each process of the site.
    "DEFAULT_THROTTLE_RATES": {
        "user": "1200/min",
        "write": "120/min",
        "failed_token": "30/min",
        "password_mail": "10/hour",
        "password_mailbox": "3/hour",
    },
}
SPECTACULAR_SETTINGS: dict[str, object] = {
    "TITLE": "LLM-Eval",
    "DESCRIPTION": "Environments, runs and comparisons. Sign in, or send `Authorization: Token <key>`.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PUBLIC": True,  # show all operations to every signed-in user
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "DEFAULT_GENERATOR_CLASS": "hub.common.rest.schema.Generator",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "hub.common.rest.schema.document_errors",
    ],
    "ENUM_NAME_OVERRIDES": {"RunStatus": "runs.models.Run.Status", "ResponseStatus": "runs.models.Response.Status"},
}
