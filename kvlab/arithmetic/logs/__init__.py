"""What an engine printed at its start, read, predicted from the model's config, and explained.

Nothing is imported here. The map of the room:

`text.log_text(data)`, `text.load_log(path)`: any paste made into clean text.
`read.read_log(text) -> tuple[Run, ...]`: one run for each start of an engine; a `facts.Run` holds
`facts.Fact`s (name, value, printed text, line, half a unit of the last digit). One file an engine
says what its lines look like: `vllm`, `sglang`, `llama_cpp`, `ollama`, `tensorrt_llm`; `tables`
reads published sizes, `settings` the options that every engine repeats.
`models.find_model_of(run, model=None, config=None)`: whose cache it is.
`case.Case`: the model and the settings from which a prediction starts.
`predict.predict(run, case) -> tuple[Finding, ...]`: one finding for each number.
`naive.NAIVE`: formulas with one thing wrong, by name: what many calculators print.
`explain.explain_run(run, ...)`, `report.explain_log(text, ...) -> LogReport`: all of it in words.
`rows.load_engine_rows()`: numbers that real engines printed, with what each must show.
"""
