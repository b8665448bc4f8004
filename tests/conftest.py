"""What every test starts from: no colour or width of the caller's terminal, repeatable property tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

# What a terminal or a CI service sets would change a report's text, here and in the commands tests start.
for name in ("CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "LINES", "PY_COLORS"):
    os.environ.pop(name, None)

# The same examples in every run and on every machine; a slow machine is not a failure.
settings.register_profile(
    "house",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real measurements and traces that lie beside the project and are no part of it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the folder ../shared/data with real traces and measurements")
    return folder
