"""The conformance table: every row, by kind."""

from tests.sandbox.conformance import (
    escapes,
    escapes_kernel,
    forgeries,
    forgeries_inconsistent_replies,
    forgeries_interpreter,
    forgeries_judged,
    forgeries_passed_objects,
    forgeries_replies,
    forgeries_tests,
    forgeries_wire,
    legitimate,
    resources,
    resources_output,
)

TABLE = [
    *forgeries.ROWS,
    *forgeries_interpreter.ROWS,
    *forgeries_wire.ROWS,
    *forgeries_judged.ROWS,
    *forgeries_passed_objects.ROWS,
    *forgeries_inconsistent_replies.ROWS,
    *forgeries_replies.ROWS,
    *forgeries_tests.ROWS,
    *resources.ROWS,
    *resources_output.ROWS,
    *escapes.ROWS,
    *escapes_kernel.ROWS,
    *legitimate.ROWS,
]
