"""`python -m jaxdp` is the command `jaxdp`."""

import sys

from jaxdp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
