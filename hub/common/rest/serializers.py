"""Base class of serializers for request bodies."""

from collections.abc import Mapping
from typing import Any, cast

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from hub.common.wording import unknown_key

Body = dict[str, Any]  # the values have the types of the serializer's fields


class StrictSerializer(serializers.Serializer[object]):
    """A request body whose unknown keys are errors, so that a misspelt key is not ignored.

    Errors about unknown choices list the known ones.
    """

    @classmethod
    def read(cls, request: Request) -> Body:
        """Return the validated body of *request*. Raises ValidationError."""
        return cls._validated(request.data)

    @classmethod
    def read_parameters(cls, request: Request) -> Body:
        """Return the validated parameters of the address of *request*. Raises ValidationError."""
        given = request.query_params
        repeated = [name for name in given if len(set(given.getlist(name))) > 1]
        if repeated:
            raise ValidationError({name: f"{name} is given several times; give one value." for name in repeated})
        return cls._validated(given)

    @classmethod
    def _validated(cls, data: object) -> Body:
        serializer = cls(data=data)
        serializer.is_valid(raise_exception=True)
        return cast(Body, serializer.validated_data)

    def get_fields(self) -> dict[str, serializers.Field]:  # type: ignore[type-arg]
        fields = super().get_fields()
        for field in fields.values():
            if isinstance(field, serializers.ChoiceField):
                choices = ", ".join(map(str, field.choices))
                field.error_messages["invalid_choice"] = f"{{input}} is not known. Choose one of {choices}."
        return fields

    def to_internal_value(self, data: object) -> object:
        if isinstance(data, Mapping):
            known = [name for name, field in self.fields.items() if not field.read_only]
            unknown = sorted(str(key) for key in data if key not in known)
            if unknown:
                raise ValidationError({key: unknown_key(key, known) for key in unknown})
        return super().to_internal_value(data)
