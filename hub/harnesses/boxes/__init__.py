"""Parts of the harness `workspace`: its options, state, tools, preparation and programs."""
