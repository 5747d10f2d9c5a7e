"""The functions of the bank agree with what they stand for, and spoken numbers are computed."""

import pytest

from kvlab.arithmetic.catalogue import find_model, model_shape
from kvlab.arithmetic.flop_steps import forward_flops
from kvlab.arithmetic.memory import kv_bytes, kv_bytes_per_token
from kvlab.arithmetic.preemption import host_bytes_per_second
from kvlab.course import claim_math_bank as bank
from kvlab.course.bank import find_question
from kvlab.course.claim_math_04 import cached_tokens_that_equal_weights
from kvlab.course.claim_math_05 import cut_percent
from kvlab.course.claim_math_07 import saving_percent
from kvlab.course.claim_math_09 import hybrid_gib
from kvlab.course.claim_math_audit_sizes import requests_on_cards
from kvlab.paging import BlockManager

SAMPLES = [(4, 20, 1, 16), (2, 32, 3, 16), (3, 9, 8, 4), (1, 5, 5, 4)]
PRICES = [(125, 10), (200, 10), (125, 25), (150, 50), (400, 10), (300, 20), (200, 50)]
LLAMA_8B = {"num_layers": 32, "num_kv_heads": 8, "head_dim": 128, "bytes_per_element": 2}
LLAMA_70B = LLAMA_8B | {"num_layers": 80}


@pytest.mark.parametrize(("samples", "prompt", "own", "block_size"), SAMPLES)
def test_blocks_of_samples_are_those_that_a_manager_hands_out(samples, prompt, own, block_size):
    manager = BlockManager(200, block_size)
    manager.allocate(0, prompt)
    for sample in range(1, samples):
        manager.fork(0, sample)
    for sample in range(samples):
        manager.append(sample, own)
    assert manager.num_used == bank.blocks_of_samples(samples, prompt, own, block_size)


def test_the_most_slots_stand_empty_when_each_last_block_holds_one_token():
    manager = BlockManager(200, 16)
    for sequence in range(5):
        manager.allocate(sequence, 16 * sequence + 1)
    held = sum(manager.num_tokens(sequence) for sequence in range(5))
    assert manager.num_used * 16 - held == bank.most_unused_slots(5, 16)


@pytest.mark.parametrize("model", ["llama-3.1-8b", "llama-3.1-70b"])
def test_attention_of_a_decoded_token_is_what_the_count_of_a_step_says(model):
    shape = model_shape(model)
    sizes = (shape.num_layers, shape.num_heads, shape.head_dim)
    step = forward_flops(shape, q_len=1, cached_tokens=8191)
    assert bank.decoded_attention_flops(*sizes, 8192) == step.attention


def test_attention_does_as_many_flops_a_byte_as_its_work_over_its_cache():
    flops = bank.decoded_attention_flops(80, 64, 128, 8192)
    assert bank.attention_intensity(64, 8, 2) == flops / kv_bytes(seq_len=8192, **LLAMA_70B)


@pytest.mark.parametrize(("write", "read"), PRICES)
def test_a_price_pays_first_where_the_saving_turns_positive(write, read):
    use = bank.first_use_that_pays(write, read)
    assert saving_percent(use, write, read) > 0 >= saving_percent(use - 1, write, read)


def test_a_state_and_the_tokens_that_equal_it_are_as_many_numbers():
    for d in (64, 128, 256):
        assert 2 * d * bank.state_in_tokens(d) == d * d


CASES = find_question("03-head-dim-read").fresh.cases


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_head_dims_are_those_of_the_configs(case):
    config = find_model(case["model"]).config
    fields = ("hidden_size", "num_attention_heads", "head_dim")
    assert (case["hidden"], case["heads"], case["dim"]) == tuple(config[f] for f in fields)


def said(question_id: str) -> str:
    """Both spoken answers of an open question."""
    question = find_question(question_id)
    return f"{question.in_30_seconds} {question.in_two_minutes}"


def test_how_big_it_is_says_the_computed_sizes():
    text, token = said("03-how-big"), kv_bytes_per_token(**LLAMA_8B)
    assert f"{token:,} bytes" in text and f"{token / 1024:.0f} KiB" in text
    assert kv_bytes(seq_len=8192, **LLAMA_8B) == 2**30 and "exactly 1 GiB" in text
    large = kv_bytes(seq_len=131_072, **LLAMA_8B)
    assert f"{large / 2**30:.0f} GiB, which is {large / 1e9:.1f} GB" in text
    equal = cached_tokens_that_equal_weights("llama-3.1-8b")
    assert f"{round(equal, -2):,.0f} cached tokens" in text
    assert f"{2 * (find_model('llama-3.1-8b').parameters or 0) / 1e9:.2f} GB" in text


def test_the_latent_says_the_computed_ratio_and_cuts():
    text = said("05-latent-attention")
    assert f"{bank.shared_numbers_ratio(8, 128, 512, 64):.2f} times" in text
    assert f"{2 * 128 * 128:,}" in text and f"{2 * 8 * 128:,} numbers" in text
    cuts = [cut_percent("deepseek-v2", "deepseek-llm-67b-base", bits) for bits in (16, 6)]
    assert f"{cuts[0]:.1f} %" in text and f"{cuts[1]:.1f} %" in text


def test_giving_way_says_the_computed_times():
    text, size = said("10-swap-or-recompute-said"), kv_bytes(seq_len=8192, **LLAMA_70B)
    link = host_bytes_per_second("H100")
    assert f"{size / 1e9:.2f} GB" in text
    assert f"{1000 * size / 8 / link:.1f} ms" in text and f"{1000 * size / link:.0f} ms" in text
    flops = 2 * 70.6e9 * 8192
    assert f"{flops / 1e15:.2f}e15" in text
    assert f"{bank.milliseconds_to_prefill(70.6, 8192, 8, 989, 50) / 1000:.2f} s" in text


def test_eleven_or_nine_says_the_computed_counts():
    text = said("11-eleven-or-nine")
    counts = [bank.whole_requests(8, 80, 131_072, *more) for more in ((100,), (90,), (90, 3))]
    assert counts == [11, 10, 9]
    for count in counts:
        assert f"so {count}" in text or f"leaves {count}" in text
    gib = 80e9 / 2**30
    assert f"{requests_on_cards('llama-3.1-70b', gib, 8, 131_072, 90, 3):.2f}" in text
    assert f"{kv_bytes(seq_len=131_072, **LLAMA_70B) / 1e9:.2f} GB or 40 GiB" in text


def test_facts_that_cards_state_are_computed():
    card = {o.text: o.why for o in find_question("09-what-still-grows").options}
    mixed, full = hybrid_gib(52, 1024, 10, 16, 128, 131_072), hybrid_gib(0, 1, 62, 16, 128, 131_072)
    assert 0.16 < mixed / full < 0.175 and any(text.startswith("About a sixth") for text in card)
    cards = {line.text: line.why for line in find_question("02-every-pass-full").options}
    assert any(f"{sum(range(2000, 2100)):,}" in why for why in cards.values())
    qwen = kv_bytes_per_token(num_layers=28, num_kv_heads=4, head_dim=128, bytes_per_element=2)
    explain = find_question("03-bits-for-bytes").explain
    assert f"{qwen:,} bytes" in explain and f"{2 * 3584 * 28 * 8:,}" in explain
    assert 28 * qwen == 2 * 3584 * 28 * 8
