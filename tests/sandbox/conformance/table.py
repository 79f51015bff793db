"""The conformance table: every row, by kind."""

from tests.sandbox.conformance import (
    escapes,
    escapes_kernel,
    forgeries,
    forgeries_judged,
    forgeries_wire,
    honest,
    resources,
)

TABLE = [
    *forgeries.ROWS,
    *forgeries_wire.ROWS,
    *forgeries_judged.ROWS,
    *resources.ROWS,
    *escapes.ROWS,
    *escapes_kernel.ROWS,
    *honest.ROWS,
]
