"""All settings. Only this module reads environment variables (and `.env`); docs/settings.md lists them."""

import secrets
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from hub.common.output.files import describe_file_error
from llmeval_site.configuration import rest
from llmeval_site.configuration.databases import database_settings
from llmeval_site.configuration.logs import logging_settings
from llmeval_site.configuration.openid import ALGORITHMS, OpenIDSettings, parse_openid_settings
from llmeval_site.configuration.private_files import (
    create_private_file,
    make_private_folder,
    restrict_files,
    wait_for_text,
)
from llmeval_site.configuration.storages import file_storage
from llmeval_site.configuration.variables import EnvironmentVariables
from sandbox.connections.backends import BACKEND_CHOICES

BASE_DIR = Path(__file__).resolve().parent.parent
ENV = EnvironmentVariables.load(BASE_DIR / ".env")

# All data is stored below one folder: database, uploads, queue, tracking store.
VAR_DIR = Path(ENV.text("LLMEVAL_VAR", str(BASE_DIR / "var"))).resolve()
try:
    make_private_folder(VAR_DIR)
except OSError as error:
    raise ImproperlyConfigured(f"LLMEVAL_VAR: cannot create {VAR_DIR}: {error.strerror}.") from None

DEBUG = ENV.flag("LLMEVAL_DEBUG", False)
ALLOWED_HOSTS = ENV.words("LLMEVAL_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = ENV.words("LLMEVAL_TRUSTED_ORIGINS")
CSRF_FAILURE_VIEW = "llmeval_site.pages.errors.csrf_failed"


def _secret_key() -> str:
    """Return LLMEVAL_SECRET_KEY, or a key that is generated at the first start and stored in a private file."""
    given = ENV.secret(
        "LLMEVAL_SECRET_KEY",
        "Give all processes the same 50 random characters (openssl rand -base64 48), or remove the variable on a "
        "single machine: a key is then generated.",
    )
    if given is not None:
        return given
    path = VAR_DIR / "secret_key"
    try:
        with suppress(FileExistsError):
            create_private_file(path, secrets.token_urlsafe(50))
        if key := wait_for_text(path):
            return key
    except OSError as error:
        raise ImproperlyConfigured(describe_file_error(error, path, VAR_DIR)) from None
    raise ImproperlyConfigured(f"{path} is empty. Delete it: the next start generates a key.")


SECRET_KEY = _secret_key()
restrict_files([VAR_DIR / "secret_key", BASE_DIR / ".env"])

INSTALLED_APPS = [
    "django.contrib.admin.apps.SimpleAdminConfig",  # urls.py registers the pages, which commands do not need
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "template_partials",
    "django_htmx",
    "django_filters",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "axes",
    "django_guid",
    "llmeval_site",
    "sandbox",
    "hub",
    "runs",
    "preferences",
    "review",
]

MIDDLEWARE = [
    "django_guid.middleware.guid_middleware",
    "llmeval_site.middleware.health_checks.HealthCheckMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "llmeval_site.middleware.null_characters.NullCharacterMiddleware",
    "llmeval_site.middleware.head_requests.HeadRequestMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "llmeval_site.middleware.trailing_slash.TrailingSlashMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "llmeval_site.middleware.sign_in_required.SignInRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "llmeval_site.middleware.idempotency.IdempotencyMiddleware",
    "llmeval_site.middleware.audit.AuditMiddleware",
    "llmeval_site.middleware.unavailable_content.UnavailableContentMiddleware",
    "llmeval_site.middleware.wrong_method.WrongMethodMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "llmeval_site.urls"
WSGI_APPLICATION = "llmeval_site.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "llmeval_site.pages.navigation.navigation",
            ],
        },
    },
]

# ---- database -------------------------------------------------------------------------------------------------------

DATABASES = {
    "default": database_settings(
        ENV.text("DATABASE_URL") or f"sqlite:///{VAR_DIR / 'llmeval.sqlite3'}",
        password_file=ENV.text("LLMEVAL_DATABASE_PASSWORD_FILE"),
        test_file=VAR_DIR / "test.sqlite3",
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# ---- web ------------------------------------------------------------------------------------------------------------

# Failed sign-ins block one name from one address. If the name were blocked from all addresses, anybody could lock a
# user out.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "llmeval_site.accounts.permissions.PermissionBackend",
]
PASSWORDS = ENV.flag("LLMEVAL_PASSWORDS", True)
if PASSWORDS:
    AUTHENTICATION_BACKENDS.append("django.contrib.auth.backends.ModelBackend")
# Sign-in with an OpenID provider, or None (llmeval_site/accounts/openid).
OPENID = parse_openid_settings(
    OpenIDSettings(
        issuer=ENV.text("LLMEVAL_OIDC_ISSUER"),
        client_id=ENV.text("LLMEVAL_OIDC_CLIENT_ID"),
        client_secret=ENV.text("LLMEVAL_OIDC_CLIENT_SECRET"),
        label=ENV.text("LLMEVAL_OIDC_LABEL", "OpenID"),
        scopes=tuple(ENV.words("LLMEVAL_OIDC_SCOPES", ["openid", "email", "profile"])),
        algorithm=ENV.choice("LLMEVAL_OIDC_ALGORITHM", "RS256", ALGORITHMS),
        endpoints={
            "authorization_endpoint": ENV.text("LLMEVAL_OIDC_AUTHORIZATION_ENDPOINT"),
            "token_endpoint": ENV.text("LLMEVAL_OIDC_TOKEN_ENDPOINT"),
            "jwks_uri": ENV.text("LLMEVAL_OIDC_JWKS_ENDPOINT"),
            "userinfo_endpoint": ENV.text("LLMEVAL_OIDC_USERINFO_ENDPOINT"),
        },
        groups_claim=ENV.text("LLMEVAL_OIDC_GROUPS_CLAIM", "groups"),
        mail_domains=tuple(ENV.words("LLMEVAL_OIDC_MAIL_DOMAINS")),
        creates_users=ENV.flag("LLMEVAL_OIDC_CREATE_USERS", False),
        session_hours=ENV.number("LLMEVAL_OIDC_SESSION_HOURS", 12, minimum=1),
    ),
    client_secret_file=ENV.text("LLMEVAL_OIDC_CLIENT_SECRET_FILE"),
    groups=ENV.words("LLMEVAL_OIDC_GROUPS"),
)
if OPENID:
    AUTHENTICATION_BACKENDS.append("llmeval_site.accounts.openid.backend.OpenIDBackend")
elif not PASSWORDS:
    raise ImproperlyConfigured("LLMEVAL_PASSWORDS=0 needs another way to sign in: set LLMEVAL_OIDC_ISSUER.")
AXES_FAILURE_LIMIT = ENV.number("LLMEVAL_SIGN_IN_FAILURES", 10, minimum=1)
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "llmeval_site.accounts.sign_in.locked_out"
AXES_CLIENT_IP_CALLABLE = "llmeval_site.accounts.sign_in.client_address"
AXES_VERBOSE = False
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
# Mail: to a server if one is named, otherwise to the log of the process.
EMAIL_HOST = ENV.text("LLMEVAL_MAIL_HOST")
EMAIL_PORT = ENV.number("LLMEVAL_MAIL_PORT", 587, minimum=1)
EMAIL_HOST_USER = ENV.text("LLMEVAL_MAIL_USER")
EMAIL_HOST_PASSWORD = ENV.text("LLMEVAL_MAIL_PASSWORD")
EMAIL_USE_SSL = EMAIL_PORT == 465
EMAIL_USE_TLS = not EMAIL_USE_SSL and ENV.flag("LLMEVAL_MAIL_STARTTLS", True)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = ENV.text("LLMEVAL_MAIL_FROM", "LLM-Eval <llm-eval@localhost>")
SENDS_MAIL = bool(EMAIL_HOST)
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if SENDS_MAIL else 'console'}.EmailBackend"
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True  # serves static/ and the files of packages directly, without collectstatic
MEDIA_ROOT = VAR_DIR / "media"
FILE_UPLOAD_PERMISSIONS = 0o600
_S3 = {
    "endpoint": ENV.text("LLMEVAL_S3_ENDPOINT"),
    "region": ENV.text("LLMEVAL_S3_REGION"),
    "access_key": ENV.text("AWS_ACCESS_KEY_ID"),
    "secret_key": ENV.text("AWS_SECRET_ACCESS_KEY"),
}
# Archives of bundles: hub/bundles/stored.py writes them and keeps copies in the cache.
# Snapshots of workspaces: sandbox/workspaces/snapshots.py.
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "archives": file_storage(ENV.text("LLMEVAL_ARCHIVES"), variable="LLMEVAL_ARCHIVES", **_S3),
    "snapshots": file_storage(
        ENV.text("LLMEVAL_SNAPSHOTS", str(VAR_DIR / "snapshots")), variable="LLMEVAL_SNAPSHOTS", **_S3
    ),
}
LARGE_TRANSCRIPT_BYTES = ENV.number("LLMEVAL_LARGE_TRANSCRIPT_KB", 64) * 1000
ARCHIVE_CACHE = Path(ENV.text("LLMEVAL_ARCHIVE_CACHE", str(VAR_DIR / "archive-cache")))
ARCHIVE_CACHE_BYTES = ENV.number("LLMEVAL_ARCHIVE_CACHE_MB", 4096) * 1_000_000
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024

# No inline scripts and no other hosts: text of a model could not run as a script even if it were not escaped.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    },
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
HTTPS = ENV.flag("LLMEVAL_HTTPS", False)
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    # HSTS preloading affects the whole domain, so its owner decides about it.
    SILENCED_SYSTEM_CHECKS = ["security.W021"]

REST_FRAMEWORK = rest.REST_FRAMEWORK
SPECTACULAR_SETTINGS = rest.SPECTACULAR_SETTINGS

# Streams of events that one process of the site sends at the same time. Each holds one of its eight threads.
EVENT_STREAMS = ENV.number("LLMEVAL_EVENT_STREAMS", 3)

# ---- runs -----------------------------------------------------------------------------------------------------------

# Environment variables that a run's config may refer to, as `api_key_env` or as `${NAME}`. No others are read.
API_KEY_VARIABLES = ENV.words(
    "LLMEVAL_API_KEY_VARIABLES",
    [
        "OPENAI_API_KEY",
        "AZURE_OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "MISTRAL_API_KEY",
        "TOGETHER_API_KEY",
        "VLLM_API_KEY",
    ],
)
# Hosts that requests to models may go to (all if empty), and whether other hosts may be in private networks.
ENDPOINT_HOSTS = ENV.words("LLMEVAL_ENDPOINT_HOSTS")
PRIVATE_ENDPOINTS = ENV.flag("LLMEVAL_PRIVATE_ENDPOINTS", not HTTPS)
# Whether webhooks may use http://, and hosts in private networks.
WEBHOOK_HTTP = ENV.flag("LLMEVAL_WEBHOOK_HTTP", False)
PRIVATE_WEBHOOKS = ENV.flag("LLMEVAL_PRIVATE_WEBHOOKS", False)
CONFIG_VARIABLES = ENV.words("LLMEVAL_CONFIG_VARIABLES", ["OPENAI_BASE_URL", "VLLM_BASE_URL"])

# After an infrastructure fault: hours for which workers retry a run, seconds for which `manage.py eval` does.
FAULT_RETRY_HOURS = ENV.number("LLMEVAL_FAULT_RETRY_HOURS", 12)
EVAL_RETRY_SECONDS = ENV.number("LLMEVAL_EVAL_RETRY_SECONDS", 120)

# Missing responses of a shard. Runs with fewer than twice as many are not divided.
SHARD_RESPONSES = ENV.number("LLMEVAL_SHARD_RESPONSES", 500, minimum=1)
# Seconds after which a run in a worker makes way for a waiting run that goes before it.
RUN_SLICE_SECONDS = ENV.number("LLMEVAL_RUN_SLICE_SECONDS", 20, minimum=1)

# Episodes over REST: open episodes per user, seconds without a step until one expires, days until it is deleted.
EPISODES_PER_USER = ENV.number("LLMEVAL_EPISODES_PER_USER", 256)
EPISODE_IDLE_SECONDS = ENV.number("LLMEVAL_EPISODE_IDLE_SECONDS", 3600, minimum=1)
# Steps that a web process executes in the background at a time, besides those in the threads of requests.
EPISODE_STEPS = ENV.number("LLMEVAL_EPISODE_STEPS", 32, minimum=1)
EPISODE_KEEP_DAYS = ENV.number("LLMEVAL_EPISODE_KEEP_DAYS", 30)

# Days after which the periodic task removes things permanently; 0 keeps them.
KEEP_DELETED_RUNS_DAYS = ENV.number("LLMEVAL_KEEP_DELETED_RUNS_DAYS", 0)
KEEP_CALLS_DAYS = ENV.number("LLMEVAL_KEEP_CALLS_DAYS", 0)
KEEP_GATES_DAYS = ENV.number("LLMEVAL_KEEP_GATES_DAYS", 0)
KEEP_AUDIT_DAYS = ENV.number("LLMEVAL_KEEP_AUDIT_DAYS", 0)

MLFLOW_TRACKING_URI = ENV.text("MLFLOW_TRACKING_URI", f"sqlite:///{VAR_DIR / 'mlflow.sqlite3'}")
MLFLOW_URL = ENV.text("LLMEVAL_MLFLOW_URL", "")
MLFLOW_ARTIFACTS = ENV.text("LLMEVAL_MLFLOW_ARTIFACTS", str(VAR_DIR / "mlartifacts"))

# ---- workers --------------------------------------------------------------------------------------------------------

TASK_APPLICATION = "llmeval_site.celery.app"
CELERY_BROKER_URL = ENV.text("CELERY_BROKER_URL", "filesystem://localhost")
if CELERY_BROKER_URL.startswith("filesystem://"):
    QUEUE_DIR = VAR_DIR / "queue"
    for _name in ("messages", "control"):
        (QUEUE_DIR / _name).mkdir(parents=True, exist_ok=True)
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(QUEUE_DIR / "messages"),
        "data_folder_out": str(QUEUE_DIR / "messages"),
        "control_folder": str(QUEUE_DIR / "control"),
    }
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Queues of tasks. A worker without -Q serves all queues. Tasks that are not listed are short and go to the default
# queue.
CELERY_TASK_QUEUES = {name: {"exchange": name, "routing_key": name} for name in ("runs", "gates", "maintenance")}
CELERY_TASK_DEFAULT_QUEUE = "maintenance"
CELERY_TASK_ROUTES = {"runs.execute_queued": {"queue": "runs"}, "hub.gates": {"queue": "gates"}}
CELERY_TASK_IGNORE_RESULT = True
# A busy worker holds no further messages, so that they wake another one.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# These periodic tasks find lost messages and runs whose worker died.
CELERY_BEAT_SCHEDULE = {
    name: {"task": task, "schedule": seconds, "options": {"expires": seconds}}
    for name, task, seconds in (
        ("execute queued runs", "runs.execute_queued", 15.0),
        ("sweep gates", "hub.gates", 15.0),
        ("sync tracking", "runs.sync_tracking", 600.0),
        ("close workspaces", "site.close_workspaces", 60.0),
        ("deliver webhooks", "site.deliver_webhooks", 15.0),
        ("refresh figures about preferences", "preferences.refresh_insight", 300.0),
        ("prune", "site.prune", 3600.0),
        ("remove unused files", "site.remove_unused_files", 86_400.0),
    )
}
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "beat-schedule")

# ---- sandbox --------------------------------------------------------------------------------------------------------

# Used for `backend: auto` in a config.
SANDBOX_BACKEND = ENV.choice("LLMEVAL_SANDBOX_BACKEND", "auto", BACKEND_CHOICES)
SANDBOX_SOCKET = ENV.text("LLMEVAL_SANDBOX_SOCKET", "/run/llmeval/sandbox.sock")
SANDBOX_IMAGE = ENV.text("LLMEVAL_SANDBOX_IMAGE")
SANDBOX_RUNTIME = ENV.text("LLMEVAL_SANDBOX_RUNTIME")
WORKSPACES = ENV.choice("LLMEVAL_WORKSPACES", "docker", ("docker", "native"))
# Docker engines on which boxes are opened in turn; none: the engine of DOCKER_HOST.
WORKSPACE_HOSTS = ENV.words("LLMEVAL_WORKSPACE_HOSTS")
# Images and boxes of the native engine.
WORKSPACES_DIR = ENV.text("LLMEVAL_WORKSPACES_DIR", str(VAR_DIR / "workspaces"))
WORKSPACES_PREPARED = ENV.number("LLMEVAL_WORKSPACES_PREPARED", 4)  # boxes that wait
WORKSPACE_BUILDS = ENV.flag("LLMEVAL_WORKSPACE_BUILDS", False)
WORKSPACE_NETWORK = ENV.text("LLMEVAL_WORKSPACE_NETWORK")  # Docker network of egress proxies; "": boxes reach no host
WORKSPACE_PACKAGES = ENV.text("LLMEVAL_WORKSPACE_PACKAGES", "llmeval-sandbox:packages")  # image with those of boxes
SANDBOX_PACKAGES = ENV.text("LLMEVAL_SANDBOX_PACKAGES", str(VAR_DIR / "packages"))
SANDBOX_WORKERS = ENV.number("LLMEVAL_SANDBOX_WORKERS", 0)  # 0: two per core, at least four
# Tier C isolates processes only weakly, so runs of live models use it only if this is enabled.
SANDBOX_WEAK_ISOLATION_FOR_LIVE_MODELS = ENV.flag("LLMEVAL_SANDBOX_WEAK_ISOLATION", False)

# ---- logs and metrics -----------------------------------------------------------------------------------------------

# The id of a request is taken from its header or generated, returned in the response, and passed on to Celery tasks.
DJANGO_GUID = {
    "GUID_HEADER_NAME": "X-Request-ID",
    "EXPOSE_HEADER": False,
}
LOGGING = logging_settings(
    log_format=ENV.choice("LLMEVAL_LOG_FORMAT", "text", ("text", "json")),
    level=ENV.choice("LLMEVAL_LOG_LEVEL", "WARNING", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")),
)

# Traces go to this OpenTelemetry collector (llmeval_site/tracing.py).
TRACES_URL = ENV.text("LLMEVAL_TRACES")
if TRACES_URL and not TRACES_URL.startswith(("http://", "https://")):
    raise ImproperlyConfigured(f"LLMEVAL_TRACES={TRACES_URL!r} must be the address of a collector: http://host:4318.")

# /metrics answers requests that carry this token; without one it does not exist.
METRICS_TOKEN = ENV.text("LLMEVAL_METRICS_TOKEN")
if METRICS_TOKEN:
    MIDDLEWARE = [
        "django_prometheus.middleware.PrometheusBeforeMiddleware",
        *MIDDLEWARE,
        "django_prometheus.middleware.PrometheusAfterMiddleware",
    ]

# Every setting is read by now.
ENV.warn_about_unknown_settings([*API_KEY_VARIABLES, *CONFIG_VARIABLES])
