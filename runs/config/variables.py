"""Variables in a config: `${NAME}` and `${NAME:-default}`."""

import re

from hub.common.documents import yaml_source
from runs.config.parsed import ParsedConfig

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def fill_variables(value: object, path: yaml_source.Path, parsed: ParsedConfig) -> object:
    """Return *value* with its variables replaced, at any depth. Problems are added to *parsed*."""
    if isinstance(value, dict):
        return {key: fill_variables(item, (*path, key), parsed) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_variables(item, (*path, i), parsed) for i, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    source = parsed.source
    lookup = source.lookup
    problems: list[str] = []
    filled = value

    def replace(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name in source.key_variables:
            problems.append(f"keys must not be filled in; write `api_key_env: {name}`")
            return ""
        if name not in source.variables:
            allowed = ", ".join(sorted(source.variables)) or "none"
            problems.append(f"${{{name}}} may not be used; allowed are {allowed} (LLMEVAL_CONFIG_VARIABLES)")
            return ""
        found = lookup(name) if lookup else None
        if not found and default is None:
            problems.append(f"the variable {name} is not set; export it, or write ${{{name}:-default}}")
        return found or default or ""

    if lookup is None:
        problems.append("variables (`${...}`) may be used on the command line only")
    else:
        filled = _VARIABLE.sub(replace, value)
    for message in problems:
        parsed.add_problem(path, message)
    if problems:
        parsed.unfilled.add(path)
    return filled
