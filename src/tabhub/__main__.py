"""`python -m tabhub`: the same as the `tabhub` command."""

import sys

from tabhub.cli import main

if __name__ == "__main__":
    sys.exit(main())
