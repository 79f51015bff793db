"""REST API of environments: list, read, upload, download."""

import tempfile
from collections.abc import Mapping
from typing import IO, cast

from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.generics import ListAPIView
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hub.bundles.stored import open_stored_archive
from hub.common.errors import TooLarge, UserError
from hub.common.rest.conditional import CONDITIONS, ConditionalView
from hub.common.rest.created import created
from hub.common.rest.errors import ErrorBody
from hub.common.rest.permissions import needs
from hub.common.rest.serializers import StrictSerializer
from hub.common.web.users import signed_in_user
from hub.common.wording import unknown_key
from hub.gates.certificates import without_failures
from hub.models import Case, Environment, EnvironmentVersion
from hub.protocols.cases import case_split
from hub.selectors import CURATE, list_forgeable_rules, may_see_content
from hub.services import move_environment
from hub.web import queries
from hub.web.audited import record_move
from hub.web.forms import MAX_UPLOAD, CasesForm, CatalogueForm
from hub.web.uploads import receive_bundle


class ZipParser(BaseParser):
    """A .zip as the request body, written to a temporary file while it is received."""

    media_type = "application/zip"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, object] | None = None
    ) -> dict[str, IO[bytes]]:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the bundle that reads it
        size = 0
        while chunk := stream.read(1 << 20):
            size += len(chunk)
            if size > MAX_UPLOAD:
                file.close()
                raise TooLarge(f"The body has more than {MAX_UPLOAD:,} bytes.")
            file.write(chunk)
        file.seek(0)
        return {"bundle": file}


class EnvironmentItem(serializers.ModelSerializer[Environment]):
    """An environment in a list."""

    team = serializers.CharField(
        source="team.slug", default=None, allow_null=True, help_text="The team that owns it; null if it is shared."
    )
    latest = serializers.CharField(source="latest.version", default=None, allow_null=True)
    cases = serializers.IntegerField(source="latest.case_count", default=0)
    digest = serializers.CharField(source="latest.digest", default=None, allow_null=True)

    class Meta:
        model = Environment
        fields = [
            "slug",
            "team",
            "title",
            "summary",
            "category",
            "tags",
            "license",
            "held_out",
            "featured",
            "visibility",
            "latest",
            "cases",
            "digest",
            "updated_at",
        ]


class VersionItem(serializers.ModelSerializer[EnvironmentVersion]):
    """A version without its content."""

    cases = serializers.IntegerField(source="case_count")

    class Meta:
        model = EnvironmentVersion
        fields = ["version", "digest", "cases", "deprecated", "created_at"]


class EnvironmentDetailItem(EnvironmentItem):
    """An environment with its versions, the newest first."""

    versions = VersionItem(many=True)

    class Meta(EnvironmentItem.Meta):
        fields = [*EnvironmentItem.Meta.fields, "versions"]


class VersionDetailItem(VersionItem):
    """A version with manifest, README and certificate."""

    environment = serializers.CharField(source="environment.slug")
    manifest = serializers.JSONField()
    certificate = serializers.JSONField()
    forgeable_rules = serializers.SerializerMethodField()

    class Meta(VersionItem.Meta):
        fields = ["environment", *VersionItem.Meta.fields, "manifest", "readme", "certificate", "forgeable_rules"]

    def get_forgeable_rules(self, version: EnvironmentVersion) -> list[str]:
        """Return the rules whose tests share a process with what the model wrote (`trust: in_process`)."""
        return list_forgeable_rules(version)


class CaseItem(serializers.ModelSerializer[Case]):
    """A case. `data` has id, input, target, choices, files, metadata and the original row.

    `split` is its column `split`, and `held_out` whether that split is held out.
    """

    id = serializers.CharField(source="external_id")
    data = serializers.JSONField()  # type: ignore[assignment]

    split = serializers.SerializerMethodField()

    class Meta:
        model = Case
        fields = ["id", "position", "data", "input_digest", "scoring_digest", "split", "held_out"]

    def get_split(self, case: Case) -> str:
        return case_split(case.data)


class Ownership(StrictSerializer):
    """The team that owns something."""

    team = serializers.CharField(max_length=64, help_text="Slug of the team, or `shared`.")


class UploadParameters(StrictSerializer):
    """Parameters of the address of an upload."""

    team = serializers.CharField(required=False, allow_blank=True, max_length=64, default="")


class StoredVersion(serializers.Serializer[object]):
    """Result of an upload. `new` is false if the same content was stored before."""

    environment = serializers.CharField(help_text="slug@version")
    digest = serializers.CharField()
    cases = serializers.IntegerField()
    visibility = serializers.CharField()
    new = serializers.BooleanField()


_FILTERS = [
    OpenApiParameter("q", str, description="words in title, summary or slug"),
    OpenApiParameter("category", str),
    OpenApiParameter("harness", str),
    OpenApiParameter("tag", str),
    OpenApiParameter("state", str, description="private, published or retired; by default all but retired"),
    OpenApiParameter("team", str, description="slug of one of your teams, or `shared`"),
]


class Environments(ListAPIView[Environment]):
    """The environments that you may see; POST stores a bundle."""

    serializer_class = EnvironmentItem
    permission_classes = [needs(CURATE)]
    write_scope = "curate"
    filter_backends = ()
    ordering = "slug"
    parser_classes = [MultiPartParser, ZipParser]

    def get_queryset(self) -> QuerySet[Environment]:
        found = queries.filter_environments(
            self.request.user, **CatalogueForm(self.request.query_params, user=self.request.user).values()
        )
        return found.defer("latest__manifest", "latest__readme", "latest__certificate")

    @extend_schema(operation_id="environments_list", parameters=_FILTERS)
    def get(self, request: Request, *args: object, **kwargs: object) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="environments_upload",
        description="A bundle as a .zip: the body itself (application/zip), or the field `bundle` of a form. "
        "All problems are reported at once; nothing is stored if there are any.",
        parameters=[
            OpenApiParameter(
                "team", str, description="slug of the team that owns a new environment, or `shared`; by default yours"
            )
        ],
        request={
            "application/zip": OpenApiTypes.BINARY,
            "multipart/form-data": {"type": "object", "properties": {"bundle": {"type": "string", "format": "binary"}}},
        },
        responses={201: StoredVersion, 200: StoredVersion, 400: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        team = UploadParameters.read_parameters(request)["team"]
        version, new = receive_bundle(file=_uploaded_file(request), user=signed_in_user(request), team=team)
        body = {
            "environment": str(version),
            "digest": version.digest,
            "cases": version.case_count,
            "visibility": version.environment.visibility,
            "new": new,
        }
        if not new:
            return Response(body)
        return created(body, "api-version", version.environment.slug, version.version)


def _uploaded_file(request: Request) -> IO[bytes]:
    """Return the uploaded .zip, from the field `bundle` or the body."""
    data = cast("dict[str, object]", request.data)  # both parsers return a mapping
    if unknown := sorted(key for key in data if key != "bundle"):  # such as `team`, which belongs into the address
        raise ValidationError({key: unknown_key(key, ["bundle"]) for key in unknown})
    sent = data.get("bundle")
    if sent is None or isinstance(sent, str):
        raise UserError("No bundle was sent. Send a .zip in the field `bundle`, or as the body.", "bundle")
    if isinstance(sent, UploadedFile):
        if (sent.size or 0) > MAX_UPLOAD:
            raise TooLarge(f"The file has {sent.size:,} bytes; at most {MAX_UPLOAD:,} are allowed.")
        return cast("IO[bytes]", sent.file)
    return cast("IO[bytes]", sent)


class EnvironmentDetail(ConditionalView):
    """Show one environment with its versions, or move it to another team."""

    write_scope = "curate"
    model = Environment

    @extend_schema(operation_id="environments_read", responses={200: EnvironmentDetailItem, **CONDITIONS})
    def get(self, request: Request, slug: str) -> Response:
        return Response(EnvironmentDetailItem(queries.get_visible_environment(request.user, slug)).data)

    @extend_schema(
        operation_id="environments_move",
        description="Move the environment to another team. Managers of its team and superusers may.",
        request=Ownership,
        responses={200: EnvironmentDetailItem, 400: ErrorBody, 403: ErrorBody, 412: ErrorBody},
    )
    def patch(self, request: Request, slug: str) -> Response:
        found = queries.get_visible_environment(request.user, slug)
        team = queries.find_target(signed_in_user(request), found, Ownership.read(request)["team"])
        move_environment(environment=found, team=team)
        response = Response(EnvironmentDetailItem(found).data)
        record_move(response, request.path, team)
        return response


class VersionDetail(APIView):
    """One version: manifest, README, certificate.

    If they are held out from the user, the first two are empty, and the certificate does not say what failed.
    """

    @extend_schema(operation_id="versions_read", responses=VersionDetailItem)
    def get(self, request: Request, slug: str, version: str) -> Response:
        found = _version(request, slug, version)
        body = VersionDetailItem(found).data
        if not may_see_content(request.user, found.environment):
            certificate = found.certificate and without_failures(found.certificate)
            body |= {"manifest": None, "readme": "", "certificate": certificate}
        return Response(body)


class Cases(ListAPIView[Case]):
    """The cases of a version, in order."""

    serializer_class = CaseItem
    filter_backends = ()
    ordering = "position"

    def get_queryset(self) -> QuerySet[Case]:
        if getattr(self, "swagger_fake_view", False):
            return Case.objects.none()
        number = self.kwargs["version"]
        filters = CasesForm(self.request.query_params).values()
        rows = queries.visible_cases(
            self.request.user, self.kwargs["slug"], None if number == "latest" else number, **filters
        )
        return rows.defer(None)

    @extend_schema(
        operation_id="cases_list", parameters=[OpenApiParameter("q", str, description="text in the id or the input")]
    )
    def get(self, request: Request, *args: object, **kwargs: object) -> Response:
        return super().get(request, *args, **kwargs)


class BundleFile(APIView):
    """The stored .zip."""

    sends_files = True

    @extend_schema(
        operation_id="versions_bundle", responses={(200, "application/zip"): OpenApiResponse(OpenApiTypes.BINARY)}
    )
    def get(self, request: Request, slug: str, version: str) -> FileResponse:
        found = _version(request, slug, version, content=True)
        return FileResponse(
            open_stored_archive(found),
            as_attachment=True,
            filename=f"{slug}-{found.version}.zip",
            content_type="application/zip",
        )


def _version(request: Request, slug: str, version: str, *, content: bool = False) -> EnvironmentVersion:
    """Return the version; `latest` is the latest one. *content* requires access to its cases and bundle."""
    get_environment = queries.get_environment_with_content if content else queries.get_visible_environment
    environment = get_environment(request.user, slug)
    return queries.get_version_or_404(environment, None if version == "latest" else version)
