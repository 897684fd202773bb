import sys

# `python -m` would look for modules in the current folder first: a repository's own `mcp` must not be ours.
if not sys.flags.safe_path:
    del sys.path[0]

from hel_lsp.cli import main

sys.exit(main())
