"""`python -m benchmarks`: every table, kernel first."""

from __future__ import annotations

from benchmarks import job, kernel

kernel.main()
print()
job.main()
