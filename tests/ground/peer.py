"""A process of its own that uses the embedded server: `python -m tests.ground.peer DATA_DIR`.

It prints its database's URL when it has one, then waits for a line (or the end of its input) and leaves.
"""

import sys

from console import config
from console.embedded import database_url


def main() -> None:
    settings = config.load({"SENDONCE_DATA_DIR": sys.argv[1], "SENDONCE_SECRET_KEY": "k" * 32})
    with database_url(settings) as url:
        print(url, flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main()
