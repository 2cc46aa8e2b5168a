"""``python -m gramian`` is the command ``gramian``."""

import sys

from gramian.cli import main

if __name__ == "__main__":
    sys.exit(main())
