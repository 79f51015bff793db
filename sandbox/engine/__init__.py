"""The program that runs untrusted Python: standard library only, the same for every backend.

    main        speaks with the pool, starts and stops runs, relays, drains output       one process
    zygote      holds a warm interpreter and forks it, once per run                       one process
    runner      a fresh fork: locks itself down, reads its job, takes one of the roles    one process per run
    candidate, judge, shared_process, program, call, attacks                              the roles

The pool imports `codec`, `frames`, `judge` and `identity` from here as well, so both ends agree on them.
"""
