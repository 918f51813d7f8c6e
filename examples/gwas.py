"""Association of 10^5 simulated SNPs with one phenotype, privately: python examples/gwas.py [--snps K] [--seed S]

Genotypes stream in blocks and only two counts per SNP stay in memory. Half of epsilon picks four SNPs, the
other half tests them; a seed makes it a simulation (not private), without one the run is a release.
"""

import argparse
import pathlib

import jax
import numpy as np

import jaxdp

CAUSAL = {1234: 0.18, 40_000: 0.15, 77_777: 0.12}  # SNP -> excess carrier rate among the cases


def genotypes(rng, case, snps, block=10_000):
    """Blocks (n, k) of minor-allele counts in Hardy-Weinberg proportions; causal SNPs are commoner in cases."""
    for start in range(0, snps, block):
        frequency = np.tile(rng.uniform(0.05, 0.4, min(block, snps - start)), (2, 1))
        for snp, excess in CAUSAL.items():
            if start <= snp < start + frequency.shape[1]:
                carriers = 1 - (1 - frequency[0, snp - start]) ** 2
                frequency[1, snp - start] = 1 - np.sqrt(max(1 - carriers - excess, 0.0))
        chance = frequency[case].astype(np.float32)
        yield (rng.random(chance.shape, np.float32) < chance).astype(np.int8) + (
            rng.random(chance.shape, np.float32) < chance
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--snps", type=int, default=100_000)
    parser.add_argument("--people", type=int, default=2000)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/gwas"))
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed if arguments.seed is not None else 1)
    case = (np.arange(arguments.people) < arguments.people // 2).astype(int)
    tables = jaxdp.Tables.from_genotypes(genotypes(rng, case, arguments.snps), case)

    key = jaxdp.fresh_key() if arguments.seed is None else jax.random.key(arguments.seed)
    groups = {"num_cases": int(case.sum()), "num_controls": int((1 - case).sum())}
    result = jaxdp.run(jaxdp.BestTables(epsilon=arguments.epsilon, count=4, **groups), key, tables)
    chosen = np.asarray(result.release.earlier[0].value)
    p_values = np.asarray(result.p_value)
    print(f"{arguments.snps} SNPs, {arguments.people} people, {result.cost}, {result.mode}")
    for snp, p_value in sorted(zip(chosen.tolist(), p_values.tolist(), strict=True), key=lambda pair: pair[1]):
        planted = "causal" if snp in CAUSAL else ""
        print(f"  SNP {snp:7d}   family-wise p {p_value:9.2e}   {planted}")

    from jaxdp.report.manhattan import draw

    path = draw(chosen, p_values, arguments.snps, arguments.out / "manhattan.png")
    print(path)


if __name__ == "__main__":
    main()
