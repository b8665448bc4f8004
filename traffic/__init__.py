"""What users send: recorded traffic, days made from a template, and random days drawn from either.

    trace.py      Trace: arrivals and lengths, and every check on them
    read/         files to traces, one file a format
    write.py      traces to the native Parquet file
    describe.py   what a trace looks like, in numbers
    arrivals.py   arrivals to counts per minute, and back
    resample.py   random days from a recorded one
    template.py   a day from published figures, for those who have no trace yet

Arrivals are an open loop: requests come when they come, however slow the answers are.
"""
