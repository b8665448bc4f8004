"""The data plane: continuous batching as numba code, exact to the iteration."""
