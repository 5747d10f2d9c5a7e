"""A Llama's weights as the C of the fast path wants them, and the two calls into it.

The C gets addresses, so what they point to is kept alive here.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import torch
from torch import Tensor

from kvlab.model.fast_compile import library
from kvlab.model.fast_pack import pack
from kvlab.model.llama import Llama

_ADDRESS, _WHOLE = ctypes.c_void_p, ctypes.c_int64
_QKVO = ("q_proj", "k_proj", "v_proj", "o_proj")
_MLP = ("gate_proj", "up_proj", "down_proj")


def _fields(kind: object, names: str) -> list[tuple[str, object]]:
    return [(name, kind) for name in names.split()]


class _Matrix(ctypes.Structure):
    _fields_ = _fields(_ADDRESS, "data bias") + _fields(_WHOLE, "kind rows columns")


class _Model(ctypes.Structure):
    _fields_ = [
        *_fields(_WHOLE, "layers hidden inner heads kv_heads head_dim vocab widest"),
        ("eps", ctypes.c_double),
        *_fields(_ADDRESS, "matrices norms windows embedding cosines sines"),
    ]


class _Cache(ctypes.Structure):
    _fields_ = [
        *_fields(_ADDRESS, "keys values"),
        *_fields(_WHOLE, "row_stride head_stride token_stride"),
        ("slots", _ADDRESS),
        ("columns", _WHOLE),
    ]


class _Run(ctypes.Structure):
    _fields_ = [
        *_fields(_ADDRESS, "ids first"),
        *_fields(_WHOLE, "batch q_len past logits_of threads layer"),
        *_fields(_ADDRESS, "qkv mix logits space"),
    ]


@dataclass(frozen=True)
class View:
    """Where a cache's keys and values lie, and where in it a pass stands.

    `keys` and `values` hold one tensor a layer; strides are in numbers. `slots` is (batch,
    columns) where a column's token lies elsewhere than in order. `first` is (batch,): the column
    of each row's first token, those before are padding. `past` is the column of the first new
    token.
    """

    keys: Sequence[Tensor]
    values: Sequence[Tensor]
    strides: tuple[int, int, int]  # of row, KV head, token
    past: int
    first: Tensor
    slots: Tensor | None = None

    def as_c(self) -> tuple[_Cache, object]:
        """Return the struct, and the addresses that must live as long as it does."""
        keys = (_ADDRESS * len(self.keys))(*[t.data_ptr() for t in self.keys])
        values = (_ADDRESS * len(self.values))(*[t.data_ptr() for t in self.values])
        slots, columns = (None, 0) if self.slots is None else (self.slots, self.slots.shape[1])
        address = None if slots is None else slots.data_ptr()
        held = ctypes.addressof(keys), ctypes.addressof(values)
        return _Cache(*held, *self.strides, address, columns), (keys, values)


class NativeLlama:
    """The weights of a float32 Llama on the CPU; `narrow` keeps them in their narrowest form.

    They are those of the moment: after training or loading others, make a new one.
    """

    def __init__(self, llama: Llama, *, narrow: bool) -> None:
        self.config, self.library = llama.config, library()
        self.weight_bytes, self.forms = 0, set()
        self._kept: list[object] = []
        self._space = torch.empty(0)
        self._lock = Lock()  # one work space: two threads of a program take turns
        self._struct = self._model(llama, narrow)

    def run(self, ids: Tensor, view: View, *, logits_of: int = 1) -> Tensor:
        """Run new tokens, (batch, q_len), through all layers into the cache.

        Returns logits of the last `logits_of` tokens, (batch, logits_of, vocab_size).
        """
        batch, q_len = ids.shape
        logits = torch.empty(batch, logits_of, self.config.vocab_size)
        ids = ids.long().contiguous()
        run = _Run(ids.data_ptr(), view.first.data_ptr(), batch, q_len, view.past, logits_of)
        run.layer, run.logits = -1, logits.data_ptr()
        self._call(run, view)
        return logits

    def attend(self, qkv: Tensor, view: View, layer_idx: int, mix: Tensor) -> None:
        """Write one layer's new keys and values to the cache and fill `mix` with the attention.

        qkv: (batch x q_len, q + k + v), before RoPE; mix: (batch x q_len, q).
        """
        batch = len(view.first)
        run = _Run(None, view.first.data_ptr(), batch, len(qkv) // batch, view.past, 1)
        run.layer, run.qkv, run.mix = layer_idx, qkv.data_ptr(), mix.data_ptr()
        self._call(run, view)

    def _call(self, run: _Run, view: View) -> None:
        run.threads = torch.get_num_threads()
        cache, alive = view.as_c()
        with self._lock:
            needed = self.library.fast_space(ctypes.byref(self._struct), ctypes.byref(run))
            if self._space.numel() < needed:
                self._space = torch.empty(needed + needed // 4)
            run.space = self._space.data_ptr()
            self.library.fast_run(*map(ctypes.byref, (self._struct, cache, run)))
        del alive

    def _model(self, llama: Llama, narrow: bool) -> _Model:
        config, layers = llama.config, llama.model.layers
        linears = [
            getattr(part, name)
            for block in layers
            for part, names in ((block.self_attn, _QKVO), (block.mlp, _MLP))
            for name in names
        ]
        matrices = [self._matrix(linear, narrow) for linear in (*linears, llama.lm_head)]
        norms = [n.weight for b in layers for n in (b.input_layernorm, b.post_attention_layernorm)]
        places = torch.arange(config.max_seq_len)[None]
        turns = [t[0, 0].contiguous() for t in llama.rope.cos_sin(places, torch.float32)]
        norms = [self._address(weight) for weight in (*norms, llama.model.norm.weight)]
        sizes = (config.num_layers, config.hidden_size, config.intermediate_size)
        heads = (config.num_heads, config.num_kv_heads, config.head_dim, config.vocab_size)
        return _Model(
            *sizes,
            *heads,
            max(matrix.columns for matrix in matrices),
            config.rms_norm_eps,
            self._array(_Matrix, matrices),
            self._array(_ADDRESS, norms),
            self._array(_WHOLE, [window or 0 for window in config.layer_windows]),
            self._address(llama.model.embed_tokens.weight),
            *[self._address(turn) for turn in turns],
        )

    def _matrix(self, linear: torch.nn.Linear, narrow: bool) -> _Matrix:
        form, data = pack(linear.weight, narrow=narrow)
        self.weight_bytes += data.nbytes
        self.forms.add(form)
        bias = None if linear.bias is None else self._address(linear.bias)
        return _Matrix(self._address(data), bias, int(form), *linear.weight.shape)

    def _address(self, tensor: Tensor) -> int:
        tensor = tensor.detach().contiguous()
        self._kept.append(tensor)
        return tensor.data_ptr()

    def _array(self, kind: type, items: Sequence[object]) -> int:
        array = (kind * len(items))(*items)
        self._kept.append(array)
        return ctypes.addressof(array)
