"""fleetcast: play production LLM traffic against measured serving profiles, many times over."""

from __future__ import annotations

__version__ = "0.1.0"
