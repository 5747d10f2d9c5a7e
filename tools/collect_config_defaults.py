"""Write `data/config_defaults.json`: what configuration classes take for keys left out.

Run it in an environment that holds the transformers release to read, then review the difference.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from kvlab.arithmetic.config_fields import FLAGS, SPELLINGS

TARGET = Path(__file__).resolve().parent.parent / "data" / "config_defaults.json"
KEYS = {*FLAGS, *(key for keys in SPELLINGS.values() for key in keys)} - {"dtype", "torch_dtype"}
NEEDED = {*SPELLINGS["num_hidden_layers"], *SPELLINGS["num_attention_heads"]}


def class_table(cls: type) -> dict[str, Any]:
    """Return the plain defaults that a class declares; false counts only where it forbids."""
    declared = {f.name: f.default for f in dataclasses.fields(cls) if f.name in KEYS}
    plain = {key: value for key, value in declared.items() if isinstance(value, (int, bool))}
    return {k: v for k, v in plain.items() if v is not False or k == "use_sliding_window"}


def collect() -> dict[str, dict[str, Any]]:
    """Return model type -> key -> default, for classes that have layers or heads."""
    tables = {name: class_table(CONFIG_MAPPING[name]) for name in sorted(CONFIG_MAPPING)}
    return {name: table for name, table in tables.items() if NEEDED & set(table)}


def main() -> None:
    """Write the table, one class a line; the day of reading is set by hand."""
    head = {
        "about": "Values that configuration classes take for keys a config.json leaves out; "
        "null and false are left out.",
        "source": f"PyPI transformers {transformers.__version__}: the configuration classes in "
        "CONFIG_MAPPING",
        "as_of": json.loads(TARGET.read_text(encoding="utf-8"))["as_of"],
    }
    rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in collect().items())
    TARGET.write_text(f'{json.dumps(head)[:-1]}, "classes": {{\n{rows}\n}}}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
