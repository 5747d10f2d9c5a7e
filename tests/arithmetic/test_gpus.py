"""The GPUs: names in any case, two kinds of memory, faults named by row and field."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvlab._paths import data_dir
from kvlab.arithmetic.gpus import find_gpu, load_gpus
from kvlab.errors import InvalidArgument, KvlabError

ROW: dict[str, Any] = json.loads((data_dir() / "gpus.json").read_text(encoding="utf-8"))["gpus"][0]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("H100", "H100 SXM5"),
        ("h100-pcie", "H100 PCIe"),
        ("a100", "A100 80GB SXM4"),
        ("A100 40gb", "A100 40GB"),
        ("rtx4090", "RTX 4090"),
        (" MI300X ", "MI300X"),
        ("t4", "T4"),
    ],
)
def test_gpus_go_by_short_names_in_any_case(name: str, found: str) -> None:
    assert find_gpu(name).name == found


def test_the_driver_reports_another_number_than_the_box() -> None:
    h100 = find_gpu("H100")
    assert h100.marketed_bytes == 80_000_000_000
    assert h100.driver_bytes == 81_559 * 2**20
    assert round(h100.ridge_flop_per_byte) == 295


def test_no_two_gpus_share_a_name() -> None:
    names = [name for gpu in load_gpus() for name in (gpu.name, *gpu.aliases)]
    assert len({"".join(filter(str.isalnum, name.casefold())) for name in names}) == len(names)


@pytest.mark.parametrize("name", ["H300", "", None, 7])
def test_an_unknown_gpu_is_answered_with_close_names(name: object) -> None:
    with pytest.raises(InvalidArgument, match="gpu="):
        find_gpu(name)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="H100 SXM5"):
        find_gpu("H-10")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"driver_bytes": 0}, r"row 1 \(T4\), driver_bytes=0: must be a number above 0"),
        ({"bandwidth_gb_s": "fast"}, "bandwidth_gb_s='fast'"),
        ({"bf16_tflops": -1}, "bf16_tflops=-1: must be a number above 0, or null"),
        ({"aliases": "T4"}, "aliases='T4': must be a list of texts"),
        ({"sources": {}}, "sources={}: must name a source for each"),
        ({"as_of": "soon"}, "as_of='soon': must be a day"),
        ({"colour": "red"}, "colour='red': is no field of a GPU"),
        ({"name": 3}, "name=3: must be text"),
    ],
)
def test_a_broken_row_is_named_with_its_field(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "gpus.json"
    path.write_text(json.dumps({"gpus": [ROW | change]}), encoding="utf-8")
    with pytest.raises(InvalidArgument, match=message):
        load_gpus(path)


def test_a_missing_field_and_a_broken_file_are_named(tmp_path: Path) -> None:
    path = tmp_path / "gpus.json"
    row = {key: value for key, value in ROW.items() if key != "watts"}
    path.write_text(json.dumps({"gpus": [row]}), encoding="utf-8")
    with pytest.raises(InvalidArgument, match="watts=None: is missing"):
        load_gpus(path)
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    with pytest.raises(KvlabError, match=r"cannot read bad\.json"):
        load_gpus(tmp_path / "bad.json")


def test_a_typo_is_answered_with_the_close_names_and_with_all() -> None:
    with pytest.raises(InvalidArgument, match=r"close: RTX 4090.*; it has T4.*H100 SXM5.*MI300X"):
        find_gpu("RTX 409O")
