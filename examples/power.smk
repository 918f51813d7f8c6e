# A power study as a Snakemake workflow: every task is a job, the last rule merges and draws.
#
#     snakemake --snakefile examples/power.smk --cores 2
#     snakemake --snakefile examples/power.smk --executor slurm --jobs 64 --config tasks=64
#
# A job that was killed goes on where it stopped (--rerun-incomplete): Snakemake deletes results.csv, the records stay.

OUT = config.get("out", "out/power")
TASKS = int(config.get("tasks", 4))
JAXDP = config.get("jaxdp", "jaxdp")
STUDY = config.get(
    "study",
    "--method partition-gcm,band-gcm --design sine --n 300,1000 --effect 0,0.25 --replicates 1e5 --chunk 5000",
)


rule all:
    input:
        f"{OUT}/merged",


rule task:
    output:
        f"{OUT}/task{{task}}/results.csv",
    threads: 2
    shell:
        "{JAXDP} simulate {STUDY} --task {wildcards.task} --of {TASKS} --resume --out {OUT}/task{wildcards.task}"


rule merge:
    input:
        expand(f"{OUT}/task{{task}}/results.csv", task=range(TASKS)),
    output:
        directory(f"{OUT}/merged"),
    shell:
        "{JAXDP} report {OUT}/task* --out {output}"
