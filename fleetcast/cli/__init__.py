"""The command line: one file a command; only this package prints and exits."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `simulate` (or `fleetcast`): 0, 1 or 3 as the thresholds say, 2 for a mistake of the user, 101 for ours."""
    from fleetcast.cli.app import app
    from fleetcast.errors import FleetcastError

    try:
        app()
    except FleetcastError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        sys.exit(130)
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
