"""Makes `python -m console` the same as the `sendonce` command."""

from console.cli import main

if __name__ == "__main__":
    main()
