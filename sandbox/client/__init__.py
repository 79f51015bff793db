"""The way into the sandbox: a pool of engines that runs jobs, and what the pool needs to be set up."""
