"""What users send: recorded traffic, days made from a template, and random days drawn from either.

    trace.py      Trace: arrivals and lengths, and every check on them
    read/         files to traces or counts, one file a format, with a report of what reading did
    write.py      traces to the native Parquet file
    counts.py     requests per step, as monitoring keeps them
    describe.py   what a trace looks like, in numbers; rhythm.py: what it does over time
    arrivals.py   arrivals to counts per minute, and back
    resample.py   random days from a recorded one, minute by minute
    calendar.py   local clock, weeks, daylight saving, holidays
    model.py      a model of traffic, and random days of it; fit.py: from a recording; modelfile.py: as TOML
    lengths.py    laws of token counts, pairs of them, named presets
    laws.py       arrival laws for tests and benchmarks, and arrivals in operational time
    change.py     what if the traffic were another
    template.py   a day from published figures, for those who have no trace yet

Arrivals are an open loop: requests come when they come, however slow the answers are.
"""
