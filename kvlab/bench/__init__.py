"""The bench: every claim of speed measured beside a peer and a limit, in one run.

`run.measure(names, setting)` yields lines; `registry.ROWS` names the rows. Each comparison is
interleaved (`timing`), each limit comes from rates of the same run (`rates`, `limits`), and what
could not be measured is said in the line's note. Nothing is imported here.
"""
