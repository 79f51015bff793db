"""The conformance table: every row, by kind."""

from tests.sandbox.conformance import (
    escapes,
    escapes_kernel,
    forgeries,
    forgeries_interpreter,
    forgeries_judged,
    forgeries_lent,
    forgeries_looks,
    forgeries_replies,
    forgeries_tests,
    forgeries_wire,
    honest,
    resources,
    resources_output,
)

TABLE = [
    *forgeries.ROWS,
    *forgeries_interpreter.ROWS,
    *forgeries_wire.ROWS,
    *forgeries_judged.ROWS,
    *forgeries_lent.ROWS,
    *forgeries_looks.ROWS,
    *forgeries_replies.ROWS,
    *forgeries_tests.ROWS,
    *resources.ROWS,
    *resources_output.ROWS,
    *escapes.ROWS,
    *escapes_kernel.ROWS,
    *honest.ROWS,
]
