"""Calibration by replay: from benchmark points to a step model that gives them back when it is played as they were.

`bench` says how a point was run and plays it; `speed` is the step model as a vector; `fit` finds the vector that gives
every figure of every point, and how sure that is; `predict` plays points that nobody measured yet; `profile` goes from
a profile file to a calibrated one. Left out: anything a benchmark's figures cannot tell, such as prefix caches.
"""
