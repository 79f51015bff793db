"""Errors of chat-completions endpoints: what they mean, and what a user can do about them.

Everybody who can see the run reads these messages, so they contain neither the address of the endpoint, nor its name
for the model, nor the name of the variable with its key.
"""

import errno
import json
import os
import re
import ssl
from typing import TypeVar
from urllib.parse import urlsplit

import openai

from hub.common.wording import counted, sentence
from hub.protocols.calls import TOO_LONG, ModelError, Reply, quoting
from runs.limits.headers import retry_after
from runs.providers.openai_api.options import OpenAIOptions
from runs.providers.openai_api.replies import excerpt

_SystemError = TypeVar("_SystemError", bound=OSError)

# How OpenSSL calls an answer that is not TLS.
_ANSWERS_WITHOUT_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG"}
# What web servers (nginx, Go, Apache) reply to a request without TLS at a port with TLS.
_REQUIRES_TLS = re.compile(
    rb"plain HTTP request was sent to HTTPS port|HTTP request to an HTTPS server|plain HTTP to an SSL-enabled server"
)
_TLS_ALERT = r"b'\x15\x03"  # start of a TLS alert, as aiohttp quotes what it expected to be a status line
_USE_HTTPS = "check `base_url`: an endpoint with TLS has an address that starts with https://"
_DISCONNECTED = "Server disconnected"  # text of aiohttp. OpenSSL closes the connection if a request is not TLS.
_UNRESOLVED = "its host name could not be resolved"
_KEY_CODES = {"invalid_api_key", "account_deactivated"}
_QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached"}
_MODEL_CODES = {"model_not_found", "DeploymentNotFound"}
_FILTER_CODES = {"content_filter", "content_policy_violation", "moderation_blocked"}
# Message of a 404 that means a wrong address or model. Any other 404 concerns only the one request.
_NOT_FOUND = re.compile(r"\b(model|deployment|url|route|path|page)\b|^\W*(resource )?not found\W*$", re.I)
_TOO_LONG = re.compile(r"context[ _](length|window|size)|maximum context|prompt is too long|input is too long", re.I)
_LONGEST_RETRY_S = 120  # the official client does not repeat a request if it is to wait longer


def refusal_reply(error: openai.APIStatusError) -> Reply | None:
    """Return the reply of an endpoint that refuses a prompt with an error status, or None for any other error.

    A refusal is a reply, so that refusing never raises a score. It is recognised by the fields of the body; text alone
    may mean anything.
    """
    body = _error_body(error)
    metadata = body.get("metadata")
    flagged = isinstance(metadata, dict) and ("flagged_input" in metadata or "reasons" in metadata)
    if error.status_code in (400, 403) and (_text(body, "code") in _FILTER_CODES or flagged):
        return Reply(message={"role": "assistant", "content": ""}, finish_reason="content_filter")
    return None


def status_error(error: openai.APIStatusError, name: str, options: OpenAIOptions) -> ModelError:
    """Return the error for a status of the endpoint of the model *name*.

    It is fatal only if every other case would meet the same error.
    """
    status, body = error.status_code, _error_body(error)
    codes = {_text(body, "code"), _text(body, "type")}
    kind, fatal, remedy = "http", False, ""
    if status == 400 and not body and _is_without_tls(options) and _REQUIRES_TLS.search(error.response.content):
        kind, fatal, remedy = "configuration", True, _USE_HTTPS
    elif status == 401 or codes & _KEY_CODES:
        kind, fatal = "auth", True
        remedy = (
            "check the key in the variable that api_key_env names"
            if options.api_key_env
            else "set api_key_env to the variable that holds the key"
        )
    elif status == 402 or codes & _QUOTA_CODES:
        kind, fatal = "quota", True
        remedy = "the account's credit or quota is used up; top it up or raise its limit, then resume the run"
    elif codes & _MODEL_CODES or (status == 404 and _is_wrong_address(body, options.model)):
        kind, fatal = "configuration", True
        remedy = "check `model` and `base_url` of the model"
    elif status == 413 or (status in (400, 422) and _is_too_long(body)):
        kind = TOO_LONG
        remedy = (
            "the conversation and the tokens that the model may write do not fit into its context; lower `max_tokens`, "
            "or evaluate this case with a model that has a larger one"
            if status != 413
            else "the request is larger than the endpoint accepts"
        )
    elif status == 403:
        kind, remedy = "forbidden", "the key may not use this model, or the provider refused this one prompt"
    elif status in (400, 422):
        remedy = "the request was not accepted; if a parameter is named, correct `parameters` of the model"
    elif status == 404:
        remedy = "the endpoint has nothing that can serve this request"
    elif (wait_s := retry_after(error.response.headers)) > _LONGEST_RETRY_S:
        remedy = f"it asks to wait {counted(round(wait_s), 'second')}, longer than a retry waits; resume the run later"
    elif status == 429:
        remedy = "every try exceeded its rate limit; lower `concurrency` or raise `limits.retries`"
    head = f"The endpoint of {name} answered {status}" + (f": {remedy}" if remedy else "")
    said = excerpt(error.response.content)
    return ModelError(kind, quoting(f"{head}.", said) if said else f"{head}. The response is empty.", fatal=fatal)


def connection_error(error: openai.APIConnectionError, name: str, options: OpenAIOptions) -> ModelError:
    """Return the error for a connection to the endpoint of the model *name* that failed."""
    cause = error.__cause__ or error
    if (tls := _find_in_chain(cause, ssl.SSLError)) is not None:
        return ModelError("transport", f"The endpoint of {name} could not be reached with TLS: {_explain_tls(tls)}")
    if _is_without_tls(options) and _TLS_ALERT in str(cause):
        return ModelError("transport", f"The endpoint of {name} answered with TLS. {sentence(_USE_HTTPS)}")
    system = _system_error(cause)
    reason = " ".join((system or without_endpoint(str(cause), name, options)).split())
    failed = "could not be reached" if system else "gave no complete HTTP response"
    remedies = {
        os.strerror(errno.ECONNREFUSED): " Check `base_url`, and that the endpoint is running.",
        _UNRESOLVED: " Check `base_url`, and that this machine can resolve names.",
    }
    remedy = remedies.get(reason, "")
    if _is_without_tls(options) and reason in (_DISCONNECTED, os.strerror(errno.ECONNRESET)):
        remedy = " If it requires TLS, its `base_url` starts with https://."
    return ModelError("transport", f"The endpoint of {name} {failed}: {reason.rstrip('.')}.{remedy}")


def _is_without_tls(options: OpenAIOptions) -> bool:
    return urlsplit(options.base_url).scheme == "http"


def _explain_tls(error: ssl.SSLError) -> str:
    """Return why TLS failed, and how to fix it. The number of such an error is OpenSSL's, not one of the system."""
    if not isinstance(error, ssl.SSLCertVerificationError):
        reason = (error.reason or type(error).__name__).replace("_", " ").lower()
        no_tls = error.reason in _ANSWERS_WITHOUT_TLS
        remedy = " Check `base_url`: an endpoint without TLS has an address that starts with http://." if no_tls else ""
        return f"{reason}.{remedy}"
    reason = error.verify_message.partition(", certificate is not valid for")[0]  # the rest names the host
    return (
        f"its certificate is not valid here: {reason.rstrip('.')}. Check `base_url`; if an authority of your own "
        "issued the certificate, name the file with the authority's certificate in the variable SSL_CERT_FILE."
    )


def _system_error(cause: BaseException) -> str:
    """Return the reason of a connection that the system could not make or that was reset; "" for other errors."""
    link = _find_in_chain(cause, OSError)
    if link is None or not link.errno:
        return ""
    return os.strerror(link.errno) if link.errno > 0 else _UNRESOLVED


def _find_in_chain(error: BaseException, kind: type[_SystemError]) -> _SystemError | None:
    """Return the last error of *kind* with a number in the chain of *error*, or None. The others wrap it."""
    found: _SystemError | None = None
    link: BaseException | None = error
    while link is not None:  # the transport raises errors of its own; the original one is at the end of the chain
        if isinstance(link, kind) and link.errno:
            found = link
        link = link.__cause__ or link.__context__
    return found


def without_endpoint(text: str, name: str, options: OpenAIOptions) -> str:
    """Return *text* without the host of the endpoint and without its name for the model *name*."""
    address = urlsplit(options.base_url)
    for host in filter(None, (address.netloc, address.hostname)):
        text = re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "[host removed]", text, flags=re.I)
    if options.model == name:
        return text
    # A longer name, such as one with the date of a version, is the name of the same model.
    longer = r"(?:[-:@.]\w[\w.:@-]*)?(?!\w)"
    return re.sub(rf"(?<!\w){re.escape(options.model)}{longer}", "[model removed]", text)


def _error_body(error: openai.APIStatusError) -> dict[str, object]:
    """Return the error object in the body, or an empty dict if there is none."""
    try:
        body = json.loads(error.response.content)
    except (ValueError, RecursionError):
        return {}
    inner = body.get("error", body) if isinstance(body, dict) else {}
    return inner if isinstance(inner, dict) else {"message": inner} if isinstance(inner, str) else {}


def _is_too_long(body: dict[str, object]) -> bool:
    """Return whether a request was not accepted because the conversation is too long."""
    return _text(body, "code") == "context_length_exceeded" or _TOO_LONG.search(_text(body, "message")) is not None


def _is_wrong_address(body: dict[str, object], model: str) -> bool:
    """Return whether a 404 means that the address or the model is wrong, not only this request."""
    message = _text(body, "message")
    return not message or model.lower() in message.lower() or _NOT_FOUND.search(message) is not None


def _text(source: dict[str, object], key: str) -> str:
    value = source.get(key)
    return value if isinstance(value, str) else ""
