"""Every verb, by random calls, against each group filtered out by hand and settled in plain Python.

`tables` draws the rows, `asked` the metrics, `calls` what is asked of them; `settled` says what must come out, from the
references and the oracle alone. `python -m tests.sweep` compares as many values as are wanted, and records what the
package answers, to be held against a later commit. `tests/README.md` says how.
"""
