"""Serve a pool over stdin and stdout: `python -I -S path/to/engine`."""

import os
import sys

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [os.path.dirname(here), *(path for path in sys.path if os.path.abspath(path) != here)]
    from engine.zygote.fork_hooks import no_hooks  # type: ignore[import-not-found]

    with no_hooks():
        from engine.server.startup import main  # type: ignore[import-not-found]

    del sys.path[0]  # runs must not import other modules of the product
    main()
