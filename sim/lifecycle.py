"""The lives of a request and of a replica, as tables: state -> event -> next state.

The reference follows this table to the letter (an event that is not listed raises), and the kernel equals the
reference. States without events are final; they are the `status` of requests.parquet.
"""

from __future__ import annotations

REQUEST: dict[str, dict[str, str]] = {
    "sent": {"arrive": "waiting", "reject": "rejected"},
    "waiting": {"admit": "prefill"},
    "prefill": {"chunk": "prefill", "token": "decode", "last_token": "completed", "preempt": "waiting"},
    "decode": {"token": "decode", "last_token": "completed", "preempt": "waiting"},
    "completed": {},
    "rejected": {},
    "timed_out": {},
    "failed": {},
    "unfinished": {},
}

STATUSES = tuple(state for state, events in REQUEST.items() if not events)
"""Final states, in the order of the codes that the arrays use."""

COMPLETED, REJECTED, TIMED_OUT, FAILED, UNFINISHED = range(len(STATUSES))


def after(state: str, event: str, life: dict[str, dict[str, str]] = REQUEST) -> str:
    """Return the state that follows *event* in *state*; a KeyError is a bug of ours."""
    return life[state][event]


REPLICA: dict[str, dict[str, str]] = {
    "requested": {"launch": "starting"},
    "starting": {"ready": "ready", "fail": "lost"},
    "ready": {"drain": "draining", "fail": "lost"},
    "draining": {"stop": "stopped", "fail": "lost"},
    "stopped": {},
    "lost": {},
}
"""The life of a replica; it is billed from `launch` until it is stopped or lost."""
