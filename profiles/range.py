"""What lengths a profile was measured with, so that a run can say how much of it lies outside."""

from __future__ import annotations

import math

from fleetcast.profiles.profile import ASSUMED_TOKEN_CV, Profile, TokenCount

Z99 = 2.3263478740408408  # standard normal 99 % quantile


def measured_lengths(profile: Profile, which: str) -> tuple[float, float] | None:
    """Return the least and the greatest `input_tokens` or `output_tokens` of the points; None where none is stated.

    A mean with a spread stands for the middle 98 % of a lognormal law (cv 0.6 where no spread was published).
    """
    counts = [getattr(point, which) for point in profile.point]
    spans = [_span(count) for count in counts if count is not None]
    return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None


def _span(count: TokenCount) -> tuple[float, float]:
    if count.tokens is not None and count.count is not None:
        seen = [tokens for tokens, times in zip(count.tokens, count.count, strict=True) if times > 0]
        return min(seen), max(seen)
    mean = count.mean or 0.0
    cv = ASSUMED_TOKEN_CV if count.cv is None else count.cv
    if mean <= 0 or cv == 0:
        return mean, mean
    sigma = math.sqrt(math.log1p(cv * cv))
    median = mean / math.sqrt(1 + cv * cv)
    return median * math.exp(-Z99 * sigma), median * math.exp(Z99 * sigma)
