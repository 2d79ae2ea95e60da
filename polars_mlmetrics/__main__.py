"""`python -m polars_mlmetrics` is `mlm`."""

import sys

from mlm_command import main

if __name__ == "__main__":
    sys.exit(main())
