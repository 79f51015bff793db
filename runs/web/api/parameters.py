"""Query parameters in the description of the REST API."""

from drf_spectacular.utils import OpenApiParameter


def text_parameters(*names: str) -> list[OpenApiParameter]:
    """Return the description of optional text parameters."""
    return [OpenApiParameter(name, str) for name in names]
