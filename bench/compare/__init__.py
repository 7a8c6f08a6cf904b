"""The comparison: kinform beside client-go and other clients, on the same bytes.

``python -m bench.compare --quick`` or ``--full``. What is asked of each client is in
`bench.compare.plan` and `bench.compare.extras`, how it is measured in `bench.compare.scenario`:
always from outside, by the kernel's clocks and counters. Every repetition is kept in a record
(`bench.compare.results`), from which the table, the verdicts and the plots are made.
"""
