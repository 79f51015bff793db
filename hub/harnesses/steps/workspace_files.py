"""Scripts of a bundle that are named by a template, such as `setup/{{ id }}.sh`: their folder is code of the bundle."""

from hub.common.problems import Problem


def code_of(path: object) -> list[str]:
    """Return *path* as code of a bundle; for a template the folder that its files are in, with a final slash."""
    if not isinstance(path, str) or not path:
        return []
    fixed, template, _ = path.partition("{{")
    folder = fixed.rpartition("/")[0]
    if template:
        return [f"{folder}/"] if folder else []  # reported by `unknown_folder`
    return [path]


def folder_of(path: object) -> list[str]:
    """Return the folder *path* as code of a bundle, with a final slash; for a template the folder that it is in."""
    found = code_of(path)
    return [f"{name.rstrip('/')}/" for name in found]


def unknown_folder(path: object, key: str) -> list[Problem]:
    """Return the problem of a template that does not begin with a folder."""
    if isinstance(path, str) and "{{" in path and "/" not in path.partition("{{")[0]:
        return [Problem(f"{path!r} must begin with a folder, such as {key}/{{{{ id }}}}.sh", key)]
    return []
