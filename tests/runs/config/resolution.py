"""Lookup of the environments of a config that is parsed already."""

from runs.config.parsed import ParsedConfig
from runs.config.resolve import SelectedEnvironment, resolve_config
from runs.config.schema import RunConfig
from runs.config_source import ConfigSource


def find_environments(config: RunConfig) -> list[SelectedEnvironment]:
    """Look up the environments of *config*. Raises ConfigError if one, or a model for one of its roles, is missing."""
    parsed = ParsedConfig(ConfigSource(base_dir=config.base_dir))
    parsed.environments = dict(enumerate(config.environments))
    parsed.roles, parsed.seed, parsed.config = frozenset(config.roles), config.seed, config
    return resolve_config(parsed).environments
