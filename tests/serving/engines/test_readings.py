"""A metrics endpoint becomes the same objects that our own server has."""

import pytest
from engine_stand_in import METRICS
from hypothesis import given
from hypothesis import strategies as st

from kvlab.paging import BlockManager
from kvlab.serving.engines.exposition import samples, whole
from kvlab.serving.engines.readings import USAGE, read_metrics
from kvlab.serving.metrics import Metrics
from kvlab.serving.scheduler import Scheduler
from kvlab.serving.timeline import Point


def test_vllms_numbers_and_its_pool_are_read() -> None:
    told = read_metrics(METRICS)
    assert told is not None
    pool = (told.num_blocks, told.block_size, told.tokens, told.concurrency, told.budget_bytes)
    assert pool == (128, 32, 4096, 4.0, 188_743_680)
    assert told.point(1.5) == Point(1.5, 2, 1, 0.5, 3, 77, 9)
    assert told.prefix_hit_rate == 0.25
    assert told.used_blocks == 0.5 * 127


def test_every_name_that_our_server_says_is_read() -> None:
    ours = Metrics().as_vllm(Scheduler(BlockManager(4, 4)))
    lines = "\n".join(f'{name}{{engine="0"}} {1 / (index + 1)}' for index, name in enumerate(ours))
    told = read_metrics(lines)
    assert told is not None and set(told.as_vllm()) == set(ours)
    assert all(told[name] == 1 / (index + 1) for index, name in enumerate(ours))


def test_several_engines_are_added_up_and_the_fullest_pool_counts() -> None:
    lines = [f'vllm:num_requests_running{{engine="{i}"}} {i + 1}' for i in range(3)]
    lines += [f'{USAGE}{{engine="{i}"}} {use}' for i, use in enumerate((0.2, 0.9, 0.4))]
    told = read_metrics("\n".join(lines))
    assert told is not None
    assert (told["vllm:num_requests_running"], told[USAGE]) == (6.0, 0.9)


def test_only_the_samples_of_the_named_model_count() -> None:
    lines = [f'vllm:num_requests_running{{model_name="{m}"}} {n}' for m, n in (("a", 1), ("b", 5))]
    told = read_metrics("\n".join(lines), model="b")
    assert told is not None and told["vllm:num_requests_running"] == 5


def test_llama_cpp_is_translated_where_both_mean_the_same() -> None:
    told = read_metrics(
        "llamacpp:requests_processing 2\nllamacpp:requests_deferred 1\n"
        "llamacpp:prompt_tokens_total 20\nllamacpp:prompt_tokens_cached_total 512\n"
        "llamacpp:tokens_predicted_total 64\n"
    )
    assert told is not None and told.engine == "llama.cpp"
    assert told["vllm:prefix_cache_queries_total"] == 532
    assert told["vllm:prefix_cache_hits_total"] == 512
    assert told.point(0)[1:3] == (2, 1) and told.num_blocks is None
    assert "vllm:num_preemptions_total" not in told.values


def test_counters_since_an_earlier_look_are_differences() -> None:
    before = read_metrics(METRICS)
    after = read_metrics(METRICS.replace("total{engine=\"0\",model_name=\"m\"} 3.0",
                                         "total{engine=\"0\",model_name=\"m\"} 7.0"))  # fmt: skip
    assert before and after
    rises = after.since(before)
    assert rises["vllm:num_preemptions_total"] == 4
    assert rises["vllm:generation_tokens_total"] == 0
    assert "vllm:num_requests_running" not in rises


def test_labels_with_quotes_commas_and_braces_are_read_whole() -> None:
    (sample,) = samples('a{x="1,\\"2\\"}",y="b\\\\n\\n"} 5 1700000000')
    assert sample.labels == {"x": '1,"2"}', "y": "b\\n\n"} and sample.value == 5


@pytest.mark.parametrize(
    "line", ["a", "a{", 'a{x="1} 2', "a x", "{} 1", "a{x=1} 2", "# a 1", "1a 2", "a{x='1'} 2"]
)
def test_what_is_no_sample_is_left_out(line: str) -> None:
    assert list(samples(line)) == []


@given(st.text(max_size=200))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    read_metrics(text)
    read_metrics(f"vllm:cache_config_info{{{text}}} 1\nvllm:x{text} 2")


@pytest.mark.parametrize("text", ["None", "", "-1", "nan", "inf", "1.5", "x"])
def test_a_label_that_is_no_whole_number_is_none(text: str) -> None:
    assert whole(text) is None


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1", "1e300"])
def test_a_number_that_cannot_be_is_left_out_and_said(text: str) -> None:
    told = read_metrics(f"vllm:num_requests_running {text}\nvllm:num_requests_waiting 1")
    assert told is not None and told.values == {"vllm:num_requests_waiting": 1}
    assert list(told.odd) == ["vllm:num_requests_running"] and told.point(0).running == 0
    assert read_metrics(f"llamacpp:requests_processing {text}").odd.keys() == told.odd.keys()


def test_one_engine_without_a_number_leaves_the_sum_out() -> None:
    told = read_metrics('vllm:num_requests_running{engine="0"} 1\n'
                        'vllm:num_requests_running{engine="1"} nan')  # fmt: skip
    assert told is not None and not told.values


def test_hits_above_queries_are_left_out_and_make_no_rate() -> None:
    told = read_metrics("vllm:prefix_cache_queries_total 4\nvllm:prefix_cache_hits_total 9")
    assert told is not None and told.prefix_hit_rate is None
    assert told.odd == {"vllm:prefix_cache_hits_total": "9, above its queries"}


def test_an_absurd_pool_is_left_out_and_said() -> None:
    labels = 'block_size="1e300",num_gpu_blocks="-5",kv_cache_max_concurrency="1e308"'
    told = read_metrics(f'vllm:cache_config_info{{{labels},kv_cache_memory_bytes="None"}} 1')
    assert told is not None
    assert (told.num_blocks, told.block_size, told.tokens, told.concurrency) == (None,) * 4
    assert set(told.odd) == {"block_size", "num_gpu_blocks", "kv_cache_max_concurrency"}
