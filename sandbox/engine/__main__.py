"""`python -I -S path/to/engine`: serve a pool over stdin and stdout."""

import os
import sys

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [os.path.dirname(here), *(path for path in sys.path if os.path.abspath(path) != here)]
    from engine.zygote.fork_hooks import no_hooks  # type: ignore[import-not-found]

    with no_hooks():
        from engine.server.event_loop import main  # type: ignore[import-not-found]

    del sys.path[0]  # the rest of the product's modules are nobody's business here
    main()
