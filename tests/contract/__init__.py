"""One suite of cases for two servers: the real one answers, the embedded one must equal.

The words: a *case* (`tests.contract.case`) makes requests through a `Session`;
what went over the wire are its *exchanges*; `tests.contract.normal` takes out what differs from
run to run; `tests.contract.record` keeps what the real server answered, and compares.
"""
