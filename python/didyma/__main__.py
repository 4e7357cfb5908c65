"""The command line: `didyma`, or `python -m didyma`."""

import sys

from didyma._didyma import command_line


def main() -> None:
    """Carries out the command, and ends with its exit code."""
    sys.exit(command_line([sys.executable, "-m", "didyma"], ["didyma", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
