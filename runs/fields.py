"""JSON that comes back from every database as it was put in: PostgreSQL's own type sorts the keys of objects."""

import json
from typing import Any

from django.db import models


class OrderedJSONField(models.JSONField):
    """A JSON value, stored as text. What a tool or a harness shows a model may follow the order of its keys."""

    def db_type(self, connection: Any) -> str:
        return "text"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return None if value is None else json.dumps(value, ensure_ascii=False)
