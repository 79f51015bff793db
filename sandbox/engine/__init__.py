"""The program that runs untrusted Python: standard library only, the same for every backend.

Three kinds of processes:

    server    one: talks to the pool, starts and stops runs, passes on their frames and output
    zygote    one: a warm interpreter that forks once per run
    run       one per run: a fork that locks itself down, reads its job, and takes a role

Packages, from the top layer to the bottom:

    server/      event loop, sessions, pipes between two engines
    zygote/      the warm interpreter, its preparation, and the start of a run
    test_judge/  roles that run tests: in a process of their own, or in the code's process
    testing/     finds and counts tests; pytest's names, fixtures, negative controls
    proxies/     what stands for the code's objects in the tests' process
    candidate/   roles that run the code under test
    isolation/   system calls, namespaces, seccomp, Landlock, control groups; the attacks of the self-test
    protocol/    frames, encoded values, operations and their replies

Imports inside the engine are relative, since it is started by path as `engine` and imported by the pool as
`sandbox.engine`.
"""
