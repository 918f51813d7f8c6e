"""A schema whose columns several plans are made for, as a dict and as a file."""

import json

SCHEMA = {
    "columns": {
        "dose": {"kind": "continuous", "bounds": [0, 10]},
        "response": {"kind": "continuous", "bounds": [-5, 5]},
        "age": {"kind": "continuous", "bounds": [18, 90]},
        "smoker": {"kind": "binary", "levels": ["no", "yes"]},
        "town": {"kind": "categorical", "levels": ["a", "b", "c"]},
        "grade": {"kind": "ordinal", "levels": ["low", "middle", "high"]},
    }
}
TOML = "\n".join(
    f"[columns.{name}]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in rule.items())
    for name, rule in SCHEMA["columns"].items()
)
