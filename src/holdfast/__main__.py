"""`python -m holdfast`."""

import sys

from holdfast.apps.cli.main import main

sys.exit(main())
