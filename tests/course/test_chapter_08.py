"""The exercises, claims, questions and reports of chapter 08, against numbers found by hand."""

import numpy as np
import pytest
import torch
from exercise_answers import assert_told_apart

from kvlab.cache.quantized_tensor import dequantize, quantize
from kvlab.course import checks_08
from kvlab.course import exercises as ex
from kvlab.course.claims import find_claim, load_claims
from kvlab.course.fp8_reports import load_reports
from kvlab.course.grading import Verdict

EXPECTED = {
    "int4-quarters": [16 / (4 + 32 / group) for group in (32, 64, 128)],
    "fp8-always-good-default": None,
    "int8-halves": [16 / (8 + 16 / 128), 2.0],
    "fp8-2048-to-1024": [4096, 2048],
    "weight-and-kv-dtype-independent": None,
    "bytes-per-element": 8.125,
    "int4-with-residual-8k": [n * 16 / ((n - 128) * 4.5 + 128 * 16) for n in (1024, 8192)],
    "fp8-50-percent": 166_992 / 83_488,
    "fp8-minimal-quality-impact": None,
    "fp8-becoming-standard": None,
    "fp8-one-flag": None,
    "start-with-fp8": None,
    "exercise-4-default-fp16": [1],
}
CLAIMS = [claim for claim in load_claims() if claim.chapter == "08"]


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_a_claim_is_recomputed_to_the_expected_value(claim) -> None:  # type: ignore[no-untyped-def]
    wanted = EXPECTED[claim.id]
    assert claim.computed() == (None if wanted is None else pytest.approx(wanted, rel=1e-9))
    assert claim.topic == "quantisation"


def test_every_claim_is_covered_and_the_fixed_ones_have_their_verdict() -> None:
    assert {claim.id for claim in CLAIMS} == set(EXPECTED)
    for name in ("fp8-always-good-default", "fp8-2048-to-1024"):
        assert find_claim(name).learner_verdict == "wrong"
    for name in ("int4-quarters", "int8-halves", "weight-and-kv-dtype-independent"):
        assert find_claim(name).learner_verdict == "only if"


def test_the_reports_have_a_day_and_an_address() -> None:
    reports = load_reports()
    assert len({report.id for report in reports}) == len(reports) >= 6
    assert all(report.source.startswith("https://") for report in reports)
    needle = reports[0]
    assert "91 % to 13 %" in find_claim("fp8-always-good-default").condition
    assert (needle.before, needle.after) == ("91 %", "13 %")


def test_the_reference_of_channels_is_what_the_package_stores() -> None:
    keys = torch.randn(1, 1, 32, 8, generator=torch.Generator().manual_seed(0))
    stored = quantize(keys, "int4", granularity="channel", q_group_size=32, symmetric=False)
    theirs = dequantize(*stored)[0, 0].numpy()
    ours = checks_08.through_channels(keys[0, 0].double().numpy(), 4)
    step = (keys.amax(2) - keys.amin(2)).numpy()[0, 0] / 15
    assert (np.abs(ours - theirs) < 0.02 * step).mean() > 0.98  # scales rounded to FP16


@pytest.mark.parametrize(
    ("answer", "verdict", "said"),
    [
        ("0x5b", Verdict.RIGHT, "0x5b is the byte 0 1011 011, written in hexadecimal"),
        ("0x5a", Verdict.WRONG, "0x5a is the byte 0 1011 010, written in hexadecimal"),
        ("01011011", Verdict.RIGHT, "Right."),
        (np.int64(91), Verdict.RIGHT, "Right."),
        ("5b", Verdict.UNREADABLE, "not a byte"),
        ("0x5bb", Verdict.UNREADABLE, "not a byte"),
        (300, Verdict.UNREADABLE, "not a byte"),
        (True, Verdict.UNREADABLE, "not a byte"),
    ],
)
def test_a_byte_in_hexadecimal_is_read_and_said_to_be_one(answer, verdict, said) -> None:  # type: ignore[no-untyped-def]
    grade = checks_08.grade_byte(answer)
    assert grade.verdict is verdict and said in grade.feedback


def through_by_loop(keys, nbits):  # type: ignore[no-untyped-def]
    back = np.empty_like(keys)
    for channel in range(keys.shape[1]):
        column = keys[:, channel]
        scale = (column.max() - column.min()) / (2**nbits - 1)
        zero = np.round(-column.min() / scale)
        for token, number in enumerate(column):
            code = min(max(np.round(number / scale) + zero, 0), 2**nbits - 1)
            back[token, channel] = (code - zero) * scale
    return back


def along(axis, steps=None):  # type: ignore[no-untyped-def]
    def through(keys, nbits):  # type: ignore[no-untyped-def]
        low, high = keys.min(axis, keepdims=True), keys.max(axis, keepdims=True)
        scale = (high - low) / (2**nbits if steps else 2**nbits - 1)
        zero = np.round(-low / scale)
        return (np.clip(np.round(keys / scale) + zero, 0, 2**nbits - 1) - zero) * scale

    return through


def offset(keys, nbits):  # type: ignore[no-untyped-def]
    scale = np.ptp(keys, axis=0) / (2**nbits - 1)
    return np.round((keys - keys.min(0)) / scale) * scale + keys.min(0)


def symmetric(keys, nbits):  # type: ignore[no-untyped-def]
    scale = np.abs(keys).max(0) / (2 ** (nbits - 1) - 1)
    return np.round(keys / scale) * scale


RIGHT = {
    "08-a": ["299.5 MiB", "314,048,512 bytes", "314.05 MB"],
    "08-b": [through_by_loop, checks_08.through_channels],
    "08-c": ["0 1011 011", "01011011", "0b0_1011_011", 0b01011011, "0x5b", " 0X5B"],
    "08-d": ["2048 MiB", "2 GiB"],
}
WRONG = {
    "08-a": {
        "a-quarter": "256 MiB",
        "no-residual": "288 MiB",
        "no-zero-point": "283.75 MiB",
        "no-scales": "268 MiB",
        "added": "304 MiB",
        "keys-only": "149.75 MiB",
        "one-layer": "9.359 MiB",
    },
    "08-b": {
        "per-token": along(1),
        "per-tensor": along(None),
        "one-step-too-many": along(0, steps=True),
        "smallest-number-kept": offset,
        "symmetric": symmetric,
    },
    "08-c": {
        "cut-off": "0 1011 010",
        "other-format": "0 10011 01",
        "no-bias": "0 0100 011",
        "bias-8": "0 1100 011",
        "leading-one": "0 1011 101",
        "sign": "1 1011 011",
        "": "0 0000 000",
    },
    "08-d": {"half-size": "1024 MiB", "16-bit": "4096 MiB", "query-heads": "8 GiB"},
}
EXERCISES = ex.exercises_of("08")


@pytest.mark.parametrize("exercise", EXERCISES, ids=[e.id for e in EXERCISES])
def test_right_answers_pass_and_each_slip_is_named(exercise) -> None:  # type: ignore[no-untyped-def]
    assert_told_apart(exercise, RIGHT, WRONG)


def test_the_byte_asked_for_is_the_one_torch_casts_to() -> None:
    cast = torch.tensor(21.3).to(torch.float8_e4m3fn)
    assert f"{cast.view(torch.uint8).item():08b}" == "01011011"
    assert cast.item() == 22
