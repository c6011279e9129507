"""``python -m workbench``: the command line without an installed script."""

import sys

from workbench.cli import main

sys.exit(main())
