import sys

from hel_lsp.cli import main

sys.exit(main())
