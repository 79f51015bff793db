"""Packages that the test scripts of Harbor tasks install.

They are installed in the image, because boxes have no network.
Harbor's scripts usually install `uv` and request their packages with `uvx`. In a scoring box, these commands are
replaced by ones that use what the image has.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

NETWORK = re.compile(
    r"\b(apt-get\s+(?:-\S+\s+)*(?:update|install)|apt\s+(?:update|install)|apk\s+add|pip3?\s+install|uvx?|np[mx]"
    r"|git\s+clone|curl|wget)\b"
)
FOLDER = "/opt/llmeval-tests"  # the virtual environment of `uvx`
_LOCAL = re.compile(r"localhost|127\.0\.0\.1|0\.0\.0\.0")
_UV = re.compile(r"astral\.sh/uv\b")
_OPERATOR = re.compile(r"[();<>|&]+")
_LITERAL = re.compile(r"[A-Za-z0-9._+@=<>!~,:\[\]-]+")
_BEFORE = ("if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "sudo", "time", "exec")
_WITH_VALUE = ("-p", "--python", "-w", "--with", "--from")
_PIP_WITH_VALUE = ("-r", "--requirement", "-e", "--editable", "-c", "-i", "--index-url", "--extra-index-url", "-t")

# The beginning of the script that runs the tests. Commands in /verify/bin come first in PATH.
STAND_INS = f"""mkdir -p "$HOME/.local/bin"
: > "$HOME/.local/bin/env"
for name in apt-get apt; do printf '#!/bin/sh\\nexit 0\\n' > /verify/bin/$name; done
cat > /verify/bin/uv <<'END'
#!/bin/sh
[ "$1 $2" = "pip install" ]
END
cat > /verify/bin/uvx <<'END'
#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        {"|".join(_WITH_VALUE)}) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
tool=${{1%%[=@<>~]*}}
shift
exec {FOLDER}/bin/"$tool" "$@"
END
for name in curl wget; do
    printf '#!/bin/sh\\ncase "$*" in *astral.sh/uv*) exit 0 ;; esac\\n' > /verify/bin/$name
    printf 'PATH=${{PATH#*:}} exec %s "$@"\\n' $name >> /verify/bin/$name
done
chmod 755 /verify/bin/*
"""


@dataclass(slots=True)
class Installs:
    """Packages that a script installs, and the lines that cannot be understood."""

    apt: list[str] = field(default_factory=list)
    pip: list[str] = field(default_factory=list)
    uvx: list[str] = field(default_factory=list)
    uses_uv: bool = False
    problems: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.apt or self.pip or self.uvx or self.uses_uv)

    def dockerfile(self) -> str:
        """Return the lines that install the packages."""
        lines = ["", "# Installed by tests/test.sh", "USER root"]
        if self.apt:
            lines.append(f"RUN apt-get update && apt-get install -y {shlex.join(self.apt)}")
        if self.pip:
            lines.append(
                f"RUN python3 -m pip --version || {_apt('python3-pip')}\n"
                f"RUN PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-cache-dir {shlex.join(self.pip)}"
            )
        if self.uvx:
            lines.append(
                f"RUN python3 -m venv {FOLDER} || {{ {_apt('python3-venv')} && python3 -m venv {FOLDER}; }}\n"
                f"RUN {FOLDER}/bin/pip install --no-cache-dir {shlex.join(self.uvx)}"
            )
        return "\n".join(lines) + "\n"


def find_installs(text: str, name: str) -> Installs:
    """Return what the script *text* installs. `name` names the script in problems."""
    found = Installs()
    for number, line in _logical_lines(text):
        if NETWORK.search(line) is None:
            continue
        try:
            for command in _commands(line):
                _read_command(command, found)
        except ValueError as error:
            found.problems.append(f"line {number} of {name}: {error}")
    for packages in (found.apt, found.pip, found.uvx):
        packages[:] = dict.fromkeys(packages)
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are no comments, joined with those that continue them, by their first number."""
    first, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if not parts:
            first = number
            if line.lstrip().startswith("#"):
                continue
        parts.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            yield first, " ".join(parts)
            parts = []
    if parts:
        yield first, " ".join(parts)


def _commands(line: str) -> Iterator[list[str]]:
    """Yield the commands of a line without redirections. Raises ValueError if it is not a whole line of a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        tokens = list(lexer)
    except ValueError:
        raise ValueError(f"it needs network, and cannot be read: {line.strip()[:80]}") from None
    command: list[str] = []
    skip = False
    for token in tokens:
        if skip:
            skip = False
        elif not _OPERATOR.fullmatch(token):
            command.append(token)
        elif "<" in token or ">" in token:
            skip = True
            if command and command[-1] in ("0", "1", "2"):
                command.pop()
        else:
            yield command
            command = []
    yield command


def _read_command(command: Sequence[str], found: Installs) -> None:
    """Add what *command* installs. Raises ValueError if it needs the network for anything else."""
    words = list(command)
    while words and (words[0] in _BEFORE or re.match(r"[A-Za-z_]\w*=", words[0])):
        words.pop(0)
    if len(words) > 3 and re.fullmatch(r"python3?", words[0]) and words[1:3] == ["-m", "pip"]:
        words = words[2:]
    if not words or words[0] in ("command", "which", "echo", "printf"):
        return
    program, arguments = words[0].rpartition("/")[2], words[1:]
    action = next((word for word in arguments if not word.startswith("-")), "")
    if program in ("apt-get", "apt"):
        if action == "install":
            found.apt += _packages(arguments, "install", ())
    elif program in ("pip", "pip3", "uv"):
        if program == "uv" and arguments[:1] == ["pip"]:
            arguments, action, found.uses_uv = arguments[1:], "".join(arguments[1:2]), True
        if action == "install":
            found.pip += _packages(arguments, "install", _PIP_WITH_VALUE)
        elif program == "uv":
            raise ValueError(f"it needs network: `uv {action}`")
    elif program == "uvx":
        found.uses_uv = True
        found.uvx += _uvx_packages(arguments)
    elif program in ("curl", "wget"):
        if any(_UV.search(word) for word in arguments):
            found.uses_uv = True
        elif not any(_LOCAL.search(word) for word in arguments):
            raise ValueError(f"it needs network: `{program}`")
    elif used := NETWORK.match(" ".join(words)):
        raise ValueError(f"it needs network: `{used[1]}`")


def _packages(arguments: Sequence[str], action: str, with_value: Sequence[str]) -> list[str]:
    packages = [word for word in arguments if not word.startswith("-")]
    packages.remove(action)
    if named := next((word for word in arguments if word.partition("=")[0] in with_value), ""):
        raise ValueError(f"it installs with the option {named}, which is not supported")
    return _literal(packages)


def _uvx_packages(arguments: Sequence[str]) -> list[str]:
    packages, words = list[str](), list(arguments)
    source = ""
    while words and words[0].startswith("-"):
        option, _, value = words.pop(0).partition("=")
        if option in _WITH_VALUE and not value and words:
            value = words.pop(0)
        if option in ("-w", "--with"):
            packages += value.split(",") if "[" not in value else [value]
        elif option == "--from":
            source = value
        elif option not in ("-p", "--python", "-q", "--quiet"):
            raise ValueError(f"uvx has the option {option}, which is not supported")
    if not words:
        raise ValueError("uvx names no tool")
    tool = (source or words[0]).replace("@", "==")
    known = {re.split(r"[\[=<>!~]", package)[0] for package in packages}
    return _literal([*packages, *([] if tool in known else [tool])])


def _literal(packages: list[str]) -> list[str]:
    if unclear := next((package for package in packages if not _LITERAL.fullmatch(package)), ""):
        raise ValueError(f"it installs {unclear}, which is known only when the script runs")
    return packages


def _apt(package: str) -> str:
    return f"{{ apt-get update && apt-get install -y {package}; }}"
