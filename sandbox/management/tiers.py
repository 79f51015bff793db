"""The option `--accept` of the commands that run code."""

from argparse import ArgumentParser, ArgumentTypeError

_KNOWN = frozenset("ABC")


def add_accept_argument(parser: ArgumentParser) -> None:
    """`--accept TIERS`, parsed to a frozenset of letters; by default A and B."""
    parser.add_argument(
        "--accept",
        type=accepted,
        default=frozenset("AB"),
        metavar="TIERS",
        help="isolation tiers under which code may run, such as AB (the default) or ABC; C hardly contains it",
    )


def accepted(text: str) -> frozenset[str]:
    """`AB` and `A,B` as a set of tiers. Raises ArgumentTypeError."""
    tiers = frozenset(text.upper().replace(",", "").replace(" ", ""))
    if not tiers or tiers - _KNOWN:
        raise ArgumentTypeError(f"the tiers are A, B and C, written such as AB or ABC, not {text!r}")
    return tiers
