"""The option `--accept` of the commands that run code."""

from argparse import ArgumentParser, ArgumentTypeError

from sandbox.client.options import DEFAULT_TIERS, TIERS


def add_accept_argument(parser: ArgumentParser) -> None:
    """Add `--accept TIERS`, which is parsed to a frozenset of letters."""
    parser.add_argument(
        "--accept",
        type=parse_tiers,
        default=DEFAULT_TIERS,
        metavar="TIERS",
        help="isolation tiers in which code may run, such as AB (the default) or ABC; C is only weak isolation",
    )


def parse_tiers(text: str) -> frozenset[str]:
    """Return `AB` or `A,B` as a set of tiers. Raises ArgumentTypeError."""
    tiers = frozenset(text.upper().replace(",", "").replace(" ", ""))
    if not tiers or tiers - TIERS.keys():
        raise ArgumentTypeError(f"the tiers are A, B and C, written as in AB or ABC, not {text!r}")
    return tiers
