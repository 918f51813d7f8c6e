"""Runs some figures in a process of its own; JAX is imported there, after its flags are set."""


def measure_group(job) -> list[dict]:
    """Rows of some figures, in a process of their own."""
    from experiments.papers.dp_ci import concrete, config, figures
    from experiments.record import Recorder

    number, wanted, arguments = job
    chosen = config.FULL if arguments.full else config.QUICK
    recorder = Recorder(arguments.out, f"part_{number}")
    for figure in wanted:
        if figure == 7:
            concrete.figure_7(recorder, chosen, arguments.concrete)
        else:
            figures.SIMULATED[figure](recorder, chosen)
    return recorder.rows
