"""`manage.py import_benchmark`: store a published benchmark, from its data file or the Hugging Face hub."""

import tempfile
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

from hub.benchmarks.bundles import locate_in_source, write_bundle
from hub.benchmarks.registry import BENCHMARKS
from hub.benchmarks.rows import FoundRow, data_rows, hub_rows, selected_rows
from hub.benchmarks.schema import Benchmark
from hub.common.errors import UserError
from hub.common.output.files import new_folder
from hub.common.problems import Problem
from hub.common.wording import counted
from hub.management.base import add_json_argument
from hub.management.bundles import BundleCommand
from hub.manifest.problems import MANIFEST, BundleError
from hub.services import import_bundle

_OPTIONS = {"slug": "--slug", "version": "--bundle-version"}  # by the key of environment.yaml


class Options(TypedDict):
    """Options of the command as parsed."""

    name: str
    data: list[str]
    answers: str | None
    hf: str | None
    revision: str | None
    hf_config: str | None
    split: str | None
    slug: str | None
    bundle_version: str | None
    out: str | None
    json: bool


class Command(BundleCommand):
    help = f"Import a published benchmark ({', '.join(BENCHMARKS)}) from its data."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help=f"one of {', '.join(BENCHMARKS)}")
        parser.add_argument(
            "--data", action="append", default=[], metavar="FILE", help="the published file; repeatable"
        )
        parser.add_argument("--answers", metavar="FILE", help="the file of answers, if the benchmark has one")
        parser.add_argument(
            "--hf", nargs="?", const="", metavar="ID", help="download it from the Hugging Face hub instead"
        )
        parser.add_argument("--revision", metavar="COMMIT", help="with --hf: the commit's 40 hexadecimal digits")
        parser.add_argument("--hf-config", metavar="NAME", help="with --hf: a configuration other than the default")
        parser.add_argument("--split", metavar="NAME", help="with --hf: a split other than the default")
        parser.add_argument("--slug", help="store it under another slug, such as mmlu-anatomy for one subject's file")
        parser.add_argument("--bundle-version", metavar="VERSION", help="store it under another version number")
        parser.add_argument(
            "--out", metavar="FOLDER", help="write the bundle into a new folder instead of importing it"
        )
        add_json_argument(parser)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        benchmark = BENCHMARKS.require(options["name"])
        changes = {"slug": options["slug"], "version": options["bundle_version"]}
        given = {key: value for key, value in changes.items() if value}
        skipped = Counter[str]()
        try:
            found = selected_rows(benchmark, self._rows(benchmark, options), skipped)
            if options["out"]:
                self._write(benchmark, found, Path(options["out"]), given, skipped, json=options["json"])
            else:
                self._import(benchmark, found, given, skipped, json=options["json"])
        except BundleError as raised:
            error = BundleError(map(_problem_of_option, raised.problems))
            in_data = any(problem.file not in _OPTIONS.values() for problem in error.problems)
            expected = f" The file of {benchmark.name} is {benchmark.files}." if options["data"] and in_data else ""
            raise self.invalid_input(f"{error.headline()}{expected}", error.lines(), error.errors()) from None
        except UserError:
            raise
        except ValueError as error:
            raise self.invalid_input(str(error)) from None

    def _write(
        self,
        benchmark: Benchmark,
        rows: Iterator[FoundRow],
        folder: Path,
        changes: Mapping[str, str],
        skipped: Counter[str],
        *,
        json: bool,
    ) -> None:
        """Write the bundle of the benchmark into a new folder."""
        with new_folder(folder):
            write_bundle(benchmark, rows, folder, changes)
        self.print_json({"bundle": str(folder), "skipped": dict(skipped)})
        if not json:
            self.stdout.write(f"{folder}: written.{_describe_skipped(skipped)}")

    def _import(
        self,
        benchmark: Benchmark,
        rows: Iterator[FoundRow],
        changes: Mapping[str, str],
        skipped: Counter[str],
        *,
        json: bool,
    ) -> None:
        with tempfile.TemporaryDirectory() as folder:
            origins = write_bundle(benchmark, rows, Path(folder), changes)
            try:
                version = import_bundle(bundle=folder)
            except BundleError as error:
                raise BundleError(locate_in_source(problem, origins) for problem in error.problems) from None
        self.print_json(
            {
                "environment": str(version),
                "digest": version.digest,
                "cases": version.case_count,
                "skipped": dict(skipped),
            }
        )
        if not json:
            self.stdout.write(f"{version}: {counted(version.case_count, 'case')}.{_describe_skipped(skipped)}")

    def _rows(self, benchmark: Benchmark, options: Options) -> Iterator[FoundRow]:
        from_hub = options["hf"] is not None
        if from_hub == bool(options["data"]):
            raise self.invalid_input(f"Give either --data FILE or --hf. The file is {benchmark.files}.")
        if not from_hub:
            only_hub = {
                "--revision": options["revision"],
                "--hf-config": options["hf_config"],
                "--split": options["split"],
            }
            for option, value in only_hub.items():
                if value is not None:
                    raise self.invalid_input(f"{option} belongs to --hf; a file of --data is read as it is.")
            answers = Path(options["answers"]) if options["answers"] else None
            return data_rows(benchmark, [Path(name) for name in options["data"]], answers)
        changes = {"id": options["hf"], "config": options["hf_config"], "split": options["split"]}
        return hub_rows(benchmark, options["revision"] or "", {key: value for key, value in changes.items() if value})


def _problem_of_option(problem: Problem) -> Problem:
    """Return a problem of a key of environment.yaml that an option sets as a problem of the option."""
    option = _OPTIONS.get(problem.path, "") if problem.file == MANIFEST else ""
    if not option:
        return problem
    remedy = problem.remedy.replace(f"Raise `{problem.path}`", f"Give a higher {option}")
    return replace(problem, file=option, line=None, path="", remedy=remedy)


def _describe_skipped(skipped: Counter[str]) -> str:
    """Return a sentence for each reason for which rows were skipped."""
    return "".join(f" {counted(count, 'row')} skipped: {reason}." for reason, count in skipped.items())
