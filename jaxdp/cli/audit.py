"""`jaxdp audit METHOD`: a claimed epsilon against what can be found out about it."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from jaxdp._base import arguments
from jaxdp.cli import options


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "audit",
        help="check a privacy claim by attack",
        description=(
            "Runs a mechanism or test many times on two worst-case neighbours and reports a lower bound on its true "
            "epsilon. METHOD is laplace, geometric, gaussian, noisy-max, exponential, top-k, rank, sparse-vector, "
            "cauchy, student, smooth-laplace, smooth-gaussian, random-stopping, a test by its name "
            "(partition-gcm, ..., package.module:Class) or that of another of its examples (partition-gcm-axes), a "
            "causal search (svt_pc, priv_pc, em_pc, adaptive_pc, table_pc, ...), or a published variant whose claim is "
            "false: noisy-permutation, algorithm-2, algorithm-3, micr-geom, priv_pc_paper."
        ),
        epilog="example: jaxdp audit laplace --epsilon 1 --runs 1e7",
    )
    parser.add_argument("method", metavar="METHOD", help="what to audit (see above)")
    options.add_epsilon(parser)
    parser.add_argument(
        "--runs",
        type=arguments.whole_number(400, 10**9),
        metavar="N",
        help="runs in all (default 1e6; of a causal search 1e5)",
    )
    parser.add_argument("--seed", type=arguments.seed, metavar="N", help="seed of the search and of simulated runs")
    parser.add_argument(
        "--contract", action="store_true", help="check every guarantee of a test, on the examples of its spec"
    )
    options.add_out(parser, "out/audit")
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    import dataclasses

    import jax

    from jaxdp import audit
    from jaxdp.report import written

    options.keep_programs(args)
    if args.contract:
        for name, default in (("runs", None), ("epsilon", 1.0)):
            if getattr(args, name) != default:
                raise options.UserError(f"--{name} goes without --contract, whose examples have budgets of their own.")
        return contract(args)
    folder = options.output_folder(args.out, ("result.json", "audit.png"))
    key = None if args.seed is None else jax.random.key(args.seed)
    started = time.monotonic()
    found = audit.audit(args.method, args.epsilon, runs=args.runs, key=key)
    seconds = time.monotonic() - started
    result = {**dataclasses.asdict(found), "holds": found.holds, "seconds": round(seconds, 2), "seed": args.seed}
    written.put_json(folder, "result.json", result)
    written.put_picture(folder, "audit.png", draw, [found])
    files = f"wrote {folder / 'result.json'}, {folder / 'audit.png'}"
    options.tell(args, result, f"{summary(found, seconds)}\n{files}")
    return 0


def contract(args: argparse.Namespace) -> int:
    """Checks the contract of a test: 0 if it holds, 1 if it is broken."""
    import dataclasses

    from jaxdp import audit
    from jaxdp.report import written

    folder = options.output_folder(args.out, ("result.json",))
    found = audit.check_contract(args.method, seed=args.seed or 0)
    result = {**dataclasses.asdict(found), "holds": found.holds}
    written.put_json(folder, "result.json", result)
    options.tell(args, result, f"{found}\nwrote {folder / 'result.json'}")
    return 0 if found.holds else 1


def summary(found, seconds: float) -> str:
    """One screen."""
    from jaxdp._base.amounts import spent

    lines = [f"{found.method}: claimed epsilon {spent(found.claimed)}"]
    if found.runs:
        lines.append(f"  true epsilon >= {found.lower:.4f} with confidence 1 - {found.alpha:g}")
        lines.append(f"  {found.runs} runs in {seconds:.1f} s ({found.mode}), told apart by: {found.event}")
    else:
        lines.append(f"  true epsilon >= {found.lower:.4f}, exact by quadrature ({found.event})")
    if found.sensitivity is not None:
        lines.append(f"  worst neighbours found spend {found.sensitivity:.1%} of the declared sensitivity")
    lines.append("  the claim stands" if found.holds else "  THE CLAIM IS FALSE")
    return "\n".join(lines)


def draw(path: Path, audits) -> None:
    """Audited lower bound as a share of the claim, one row per audit; right of the line a claim is refuted."""
    from jaxdp.report import figures

    audits = sorted(audits, key=lambda found: (found.holds, found.method, found.claimed), reverse=True)
    shares = [found.lower / found.claimed for found in audits]
    figure, axes = figures.canvas(7.2, 1.3 + 0.28 * len(audits))
    top = 1.15 * max(1.1, *shares)
    axes.axvspan(1.0, top, color=figures.RED, alpha=0.07, linewidth=0)
    axes.axvline(1.0, color=figures.GREY, linewidth=1)
    for row, (found, share) in enumerate(zip(audits, shares, strict=True)):
        colour = figures.BLUE if found.holds else figures.RED
        axes.plot([share], [row], "o", color=colour)
        axes.annotate(f"{found.lower:.3f}", (share, row), (7, 0), textcoords="offset points", va="center", color=colour)
    axes.set_yticks(range(len(audits)), [f"{found.method}, claim {found.claimed:g}" for found in audits])
    axes.set(xlim=(0, top), ylim=(-0.7, len(audits) - 0.3))
    axes.set(xlabel="audited lower bound / claim (shaded: refuted)")
    figures.save(figure, path)
