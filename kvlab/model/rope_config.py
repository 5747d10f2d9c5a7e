"""The rotary part of a Llama's config: which kind of RoPE, and its numbers. No torch here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument, Unsupported

ROPE_KINDS = ("default", "linear", "llama3", "yarn")
_NEEDS_FACTOR = ("linear", "llama3")
_NEEDS_ORIGINAL = ("llama3", "yarn")


@dataclass(frozen=True)
class RopeConfig:
    """How positions turn queries and keys; `kind` is one of `ROPE_KINDS`.

    Fields that a kind does not use keep their defaults. Lengths are in tokens.

    >>> RopeConfig.from_hf({"rope_theta": 500000.0}, max_seq_len=8192).theta
    500000.0
    """

    kind: str = "default"
    theta: float = 10_000.0
    factor: float = 1.0
    original_max_seq_len: int | None = None
    low_freq_factor: float = 1.0  # llama3
    high_freq_factor: float = 4.0  # llama3
    attention_factor: float | None = None  # yarn, like all below; None: from `factor`
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True

    def __post_init__(self) -> None:
        if self.kind in ("dynamic", "longrope"):
            raise Unsupported(
                f"rope_type={self.kind!r}: not cache-stable; its angles change as the text grows, "
                "so keys cached earlier would keep the wrong rotation"
            )
        if self.kind not in ROPE_KINDS:
            raise InvalidArgument("rope_type", self.kind, f"must be one of {', '.join(ROPE_KINDS)}")
        for name in ("theta", "factor", "low_freq_factor", "high_freq_factor"):
            check_positive(f"rope {name}", getattr(self, name))
        if self.kind == "llama3" and self.high_freq_factor <= self.low_freq_factor:
            rule = f"must be above rope low_freq_factor={self.low_freq_factor}"
            raise InvalidArgument("rope high_freq_factor", self.high_freq_factor, rule)
        if self.kind in _NEEDS_ORIGINAL:
            whole_number("original_max_position_embeddings", self.original_max_seq_len)
        if self.kind == "yarn":
            self._check_yarn()

    def _check_yarn(self) -> None:
        if self.theta <= 1:
            raise InvalidArgument("rope theta", self.theta, "must be above 1 for yarn")
        for name in ("beta_fast", "beta_slow"):
            check_positive(f"rope {name}", getattr(self, name))
        for name in ("attention_factor", "mscale", "mscale_all_dim"):
            if getattr(self, name) is not None:
                check_positive(f"rope {name}", getattr(self, name))
        if not isinstance(self.truncate, bool):
            raise InvalidArgument("rope truncate", self.truncate, "must be true or false")

    @classmethod
    def from_hf(cls, config: Mapping[str, Any], *, max_seq_len: int) -> Self:
        """Read `rope_parameters` (new files) or `rope_theta` and `rope_scaling` (older files)."""
        given = config.get("rope_scaling") or config.get("rope_parameters") or {}
        if not isinstance(given, Mapping):
            raise InvalidArgument("rope_parameters", given, "must be an object of named numbers")
        if any(isinstance(value, Mapping) for value in given.values()):
            raise Unsupported("rope_parameters: a Llama has one set, not one for each layer type")
        above = {key: config.get(key) for key in ("rope_theta", "partial_rotary_factor")}
        given = {**above, **given}  # older files keep these two one level up
        if given.get("partial_rotary_factor") not in (None, 1.0):
            value = given["partial_rotary_factor"]
            raise InvalidArgument("partial_rotary_factor", value, "must be 1.0 for a Llama")
        kind = given.get("rope_type") or given.get("type") or "default"
        if kind in _NEEDS_FACTOR and given.get("factor") is None:
            raise InvalidArgument("rope factor", None, f"must be given for rope_type {kind!r}")
        if kind in _NEEDS_ORIGINAL:
            key = "original_max_position_embeddings"
            original = whole_number(key, config.get(key) or given.get(key) or max_seq_len)
            given["original_max_seq_len"] = original
            if given.get("factor") is None:
                given["factor"] = max_seq_len / original
        given["theta"] = given.get("rope_theta")
        names = cls.__dataclass_fields__.keys() - {"kind"}
        known = {name: given[name] for name in names if given.get(name) is not None}
        return cls(kind=kind, **known)


def check_positive(name: str, value: object) -> None:
    """Raise `InvalidArgument` unless `value` is a finite number above 0."""
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not 0 < value < float("inf")
    ):
        raise InvalidArgument(name, value, "must be a finite number above 0")
