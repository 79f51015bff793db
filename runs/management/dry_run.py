"""Output of `manage.py eval --dry-run`: the size of the run and what its stages would do."""

from rich.console import Console
from rich.text import Text

from hub.common import wording
from hub.protocols.messages import JSON
from runs.config.resolve import ResolvedConfig
from runs.reports.terminal import print_line
from runs.stages import RunSize, StageEstimate, stages


class DryRun:
    """Size and estimates of the run of a resolved config."""

    def __init__(self, resolved: ResolvedConfig) -> None:
        config = resolved.config
        self._config = config
        self._environments = resolved.environments
        self._size = RunSize(
            cases=sum(item.count for item in resolved.environments),
            models=len(config.models),
            attempts=config.attempts,
        )
        self._estimates: dict[str, StageEstimate] = {
            stage.key: stage.estimate(self._size, config.stage_configs[stage.key])
            for stage in stages()
            if stage.key in config.stage_configs
        }

    def to_json(self) -> dict[str, JSON]:
        return {
            "name": self._config.name,
            "environments": [{"environment": item.label, "cases": item.count} for item in self._environments],
            "models": [spec.name for spec in self._config.models],
            "responses": self._size.responses,
            "stages": {
                key: {"calls": estimate.calls, "cost_usd": estimate.cost_usd}
                for key, estimate in self._estimates.items()
            },
        }

    def print(self, console: Console) -> None:
        lines = [f"{item.label}: {wording.counted(item.count, 'case')}" for item in self._environments]
        models = ", ".join(spec.name for spec in self._config.models)
        attempts = wording.counted(self._size.attempts, "attempt")
        responses = wording.counted(self._size.responses, "response")
        lines.append(f"{responses} by {models}; {attempts} at each case")
        lines += [estimate.line for estimate in self._estimates.values() if estimate.line]
        for line in [*lines, "The config is valid. No model was called and nothing was stored."]:
            print_line(console, Text(line))
