"""Client of the sandbox: a pool of engines that runs jobs, its options, packages and self-test."""
