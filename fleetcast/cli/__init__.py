"""The command line: one file a command; only this package prints and exits."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import NoReturn

STOPPED = 130  # what Typer makes of Ctrl-C


def main() -> None:
    """Run `simulate` (or `fleetcast`): 0, 1 or 3 as the thresholds say, 2 for a mistake of the user, 101 for ours."""
    from fleetcast.cli.app import app
    from fleetcast.errors import FleetcastError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without ✓ is no reason to fail
    if sys.stdout is None:
        print("error: stdout is closed", file=sys.stderr)
        sys.exit(2)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except FleetcastError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == STOPPED:
            print("stopped; nothing was written", file=sys.stderr)
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":  # Click's, once the reader of a pipe has gone
            sys.exit(0)
        raise
    except OSError as error:
        if error.filename is not None:  # not the stream that is printed to
            _bug()
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (nothing more can be flushed there)
        if not isinstance(error, BrokenPipeError):
            print(f"error: stdout cannot be written\n  {error.strerror or error}", file=sys.stderr)
            sys.exit(2)
        sys.exit(0)  # the reader of the pipe has seen enough
    except MemoryError:
        print("error: not enough memory\n  play fewer days at once: --workers 1", file=sys.stderr)
        sys.exit(2)
    except Exception:
        _bug()


def _bug() -> NoReturn:
    import traceback

    from fleetcast import __version__

    traceback.print_exc()
    print(
        f"\nThis is a bug of fleetcast {__version__}, not of yours. Please report it with the text above, "
        "the command and, if you may, the files.",
        file=sys.stderr,
    )
    sys.exit(101)
