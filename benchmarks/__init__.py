"""Time and memory of the operators against their peers; run with `softorder bench`.

command.py     the command line
cases.py       what is measured: shapes, k, temperatures
providers/     who is measured: one file per peer
timing.py      how time is measured
rounds.py      how far a time can be trusted
against.py     what got slower since results that were kept
memory.py      how memory is measured
figures.py     what the measurements must reach
plots.py       how they look
report.py      what is printed and written
jobs.py        how a suite runs
topk.py        the soft top-k suite, which ties these together
rank.py        the rank and sort suite, with rank_cases.py and rank_figures.py
transport.py   the transport suite
sampling.py    the k-hot sampling suite
losses.py      the losses suite, with loss_cases.py
sharded.py     rows that are cut among processes, and sharded_model.py of many ranks
map/           every operator, method and size beside the best known alternative
goals/         what must be reached, at two SIMD levels
growth.py      rank and sort as n doubles, with growth_page.py
instructions.py  of the top-k kernels
valgrind/      how instructions and cache misses are counted
performance_page.py  what the page about performance shows of these
written.py     what every suite leaves behind
machine.py     where it was measured
"""
