"""Makes examples/trial.csv: 1500 made-up patients, with a known answer to each question.

Older patients get a higher dose and respond worse; dose helps on top of that. Smoking depends on the clinic
alone, so it is independent of the response given age and clinic. A few cells are empty, as in real files.
"""

import csv
from pathlib import Path

import numpy as np

ROWS, SEED = 1_500, 20_240_229
CLINICS = ["north", "south", "west"]


def main() -> None:
    random = np.random.default_rng(SEED)
    age = np.clip(random.normal(55, 15, ROWS), 18, 90)
    clinic = random.integers(0, 3, ROWS)
    dose = np.clip(5 + 0.05 * (age - 55) + 0.5 * clinic + random.normal(0, 1.5, ROWS), 0, 10)
    response = -0.06 * (age - 55) + 0.3 * clinic + 0.35 * (dose - 5) + random.normal(0, 1, ROWS)
    smoker = random.random(ROWS) < np.array([0.2, 0.3, 0.45])[clinic]
    columns = [
        np.char.mod("%.1f", age),
        np.array(CLINICS)[clinic],
        np.char.mod("%.2f", dose),
        np.char.mod("%.2f", response),
        np.array(["no", "yes"])[smoker.astype(int)],
    ]
    rows = np.stack(columns, axis=1)
    rows[random.random(rows.shape) < 0.005] = ""
    with (Path(__file__).parent / "trial.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["age", "clinic", "dose", "response", "smoker"])
        writer.writerows(rows.tolist())


if __name__ == "__main__":
    main()
