"""`manage.py import_benchmark`: a published benchmark from a file that the user has, mapped by its manifest alone."""

import tempfile
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hub.benchmarks import Benchmark, benchmarks, data_rows, hub_rows, selected_rows, write_bundle
from hub.common.wording import counted, suggest
from hub.datasets.row_types import Row
from hub.management.bundles import BundleCommand
from hub.manifest.problems import BundleError
from hub.services import import_bundle


class Command(BundleCommand):
    help = f"Import a published benchmark ({', '.join(benchmarks())}) from its data."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help=f"one of {', '.join(benchmarks())}")
        parser.add_argument(
            "--data", action="append", default=[], metavar="FILE", help="the published file; repeatable"
        )
        parser.add_argument(
            "--answers", metavar="FILE", help="the file of answers, where the benchmark keeps them apart"
        )
        parser.add_argument("--hf", nargs="?", const="", metavar="ID", help="take it from the Hugging Face hub instead")
        parser.add_argument("--revision", metavar="COMMIT", help="with --hf: the commit's 40 hexadecimal digits")
        parser.add_argument("--hf-config", metavar="NAME", help="with --hf: another configuration than the usual one")
        parser.add_argument("--split", metavar="NAME", help="with --hf: another split than the usual one")
        parser.add_argument("--slug", help="store it under another slug, such as mmlu-anatomy for one subject's file")
        parser.add_argument(
            "--bundle-version", metavar="VERSION", help="store it as another version than the benchmark's own"
        )
        parser.add_argument(
            "--out", metavar="FOLDER", help="write the bundle into a new folder instead of importing it"
        )
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        benchmark = benchmarks().get(options["name"])
        if benchmark is None:
            raise self.invalid_input(
                f"There is no benchmark {options['name']!r}; {suggest(options['name'], benchmarks())}"
            )
        changes = {"slug": options["slug"], "version": options["bundle_version"]}
        changes = {key: value for key, value in changes.items() if value}
        try:
            skipped = Counter[str]()
            found = selected_rows(benchmark, self._rows(benchmark, options), skipped)
            if options["out"]:
                folder = Path(options["out"])
                folder.mkdir(parents=True)
                write_bundle(benchmark, found, folder, changes)
                self.print_json({"bundle": str(folder), "skipped": dict(skipped)})
                if not options["json"]:
                    self.stdout.write(f"{folder}: written.{_left_out(skipped)}")
                return
            with tempfile.TemporaryDirectory() as folder_name:
                write_bundle(benchmark, found, Path(folder_name), changes)
                version = import_bundle(bundle=folder_name)
        except BundleError as error:
            given = f" The file of {benchmark.name} is {benchmark.files}." if options["data"] else ""
            raise self.invalid_input(f"{error.headline()}{given}", error.lines(), error.errors()) from None
        except ValueError as error:
            raise self.invalid_input(str(error)) from None
        except FileExistsError:
            raise self.invalid_input(f"{options['out']} is there already.") from None
        stored = {
            "environment": str(version),
            "digest": version.digest,
            "cases": version.case_count,
            "skipped": dict(skipped),
        }
        self.print_json(stored)
        if not options["json"]:
            self.stdout.write(f"{version}: {counted(version.case_count, 'case')}.{_left_out(skipped)}")

    def _rows(self, benchmark: Benchmark, options: dict[str, Any]) -> Iterator[Row]:
        from_hub = options["hf"] is not None
        if from_hub == bool(options["data"]):
            raise self.invalid_input(f"Give either --data FILE or --hf. The file is {benchmark.files}.")
        if not from_hub:
            answers = Path(options["answers"]) if options["answers"] else None
            return data_rows(benchmark, [Path(name) for name in options["data"]], answers)
        changes = {"id": options["hf"], "config": options["hf_config"], "split": options["split"]}
        return hub_rows(benchmark, options["revision"] or "", {key: value for key, value in changes.items() if value})


def _left_out(skipped: Counter[str]) -> str:
    """The rows that were not taken, by reason."""
    return "".join(f" {counted(count, 'row')} skipped: {reason}." for reason, count in skipped.items())
