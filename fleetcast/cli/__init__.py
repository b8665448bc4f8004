"""The command line: one file a command; only this package prints and exits."""

from __future__ import annotations

import sys
from io import TextIOWrapper

STOPPED = 130  # what Typer makes of Ctrl-C


def main() -> None:
    """Run `simulate` (or `fleetcast`): 0, 1 or 3 as the thresholds say, 2 for a mistake of the user, 101 for ours."""
    from fleetcast.cli.app import app
    from fleetcast.errors import FleetcastError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without ✓ is no reason to fail
    try:
        app()
    except FleetcastError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == STOPPED:
            print("stopped; nothing was written", file=sys.stderr)
        raise
    except MemoryError:
        print("error: not enough memory\n  play fewer days at once: --workers 1", file=sys.stderr)
        sys.exit(2)
    except Exception:
        import traceback

        from fleetcast import __version__

        traceback.print_exc()
        print(
            f"\nThis is a bug of fleetcast {__version__}, not of yours. Please report it with the text above, "
            "the command and, if you may, the files.",
            file=sys.stderr,
        )
        sys.exit(101)
