"""Benchmark suite: ratios against named peers, measured in the same run, with an answer check.

    python -m experiments.benchmarks list
    python -m experiments.benchmarks run krr_cv --case n300_d1 --reps 5 --json out.json
    scripts/bench                        # every row, writes experiments/benchmarks/results/*.json
    scripts/bench --full                 # the same, goes on where it was stopped at this commit, and writes the table

Adding a row is adding one file to `rows/`, named after the row, that holds

    CASES = {"n300": {"n": 300}, ...}    # frozen workloads: case name -> keyword arguments of `build`
    QUICK = ("n30",)                     # names of cases that finish in seconds (the test suite runs one)

    def build(n): -> Case                # data, our call, peers, goals and the check that all answers agree

`harness.Case` says what each field means. Rules: peers are the strongest available, at the better of one and two
BLAS threads, on the same data; `agree` compares answers and a failed check fails the run, so that speed is never
reported for a wrong answer; a peer that runs fewer units than ours is reported as extrapolated; compile time and
memory are separate. Peers are module-level functions (they are also started in two worker processes at once, to be
given both cores). Figures from a machine that others use at the same time are labelled `shared`: only ratios count.
"""
