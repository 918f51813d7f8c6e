"""The recorded rows as small CSV files."""

import csv
import pathlib

_DROPPED = ("part", "bias_by_bin", "variance_by_bin", "python", "device", "platform", "seconds")


def write(rows, out: pathlib.Path) -> list[pathlib.Path]:
    """One file per part; quantiles over laws become the columns bias_median, bias_low, bias_high and so on."""
    paths = []
    for part in dict.fromkeys(row["part"] for row in rows):
        chosen = [_flat(row) for row in rows if row["part"] == part]
        path = out / f"{part}.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(name for row in chosen for name in row)))
            writer.writeheader()
            writer.writerows(chosen)
        paths.append(path)
    return paths


def _flat(row) -> dict:
    found = {}
    for name, value in row.items():
        if name in _DROPPED:
            continue
        if isinstance(value, list):
            low, _, middle, _, high = value
            value = {f"{name}_low": low, f"{name}_median": middle, f"{name}_high": high}
        else:
            value = {name: value}
        found |= {key: f"{v:.4g}" if isinstance(v, float) else v for key, v in value.items()}
    return found
