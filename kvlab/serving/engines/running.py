"""An engine that runs: started from a plan, read, loaded with requests, and stopped for certain.

with start(VllmPlan("smollm2", cache_bytes=94_371_840)) as engine:
    print(engine.readings().tokens, engine.prediction.tokens)
"""

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from kvlab._paths import user_dir
from kvlab.arithmetic.logs.report import LogReport, explain_log
from kvlab.serving.engines.endpoint import Endpoint
from kvlab.serving.engines.environments import VLLM, Environment, require_environment
from kvlab.serving.engines.failures import explain
from kvlab.serving.engines.faults import EngineFailed, NoAnswer
from kvlab.serving.engines.interrupts import cut_on_interrupt
from kvlab.serving.engines.llamacpp import LlamaCppPlan
from kvlab.serving.engines.load import send_load
from kvlab.serving.engines.machine import Machine, this_machine
from kvlab.serving.engines.models import config_of, vocab_size_of
from kvlab.serving.engines.prediction import CellsPrediction, PagedPrediction
from kvlab.serving.engines.process import EngineProcess, free_port
from kvlab.serving.engines.progress import progress_bar, progress_line
from kvlab.serving.engines.readings import Readings, read_metrics
from kvlab.serving.engines.real_ids import with_real_ids
from kvlab.serving.engines.served import Load
from kvlab.serving.engines.vllm import VllmPlan
from kvlab.serving.request import Request

Plan = VllmPlan | LlamaCppPlan
PATIENCE = {VLLM: 300.0, "llamacpp": 60.0}


class RunningEngine:
    """One engine at work on this machine's loopback; leaving the `with` block ends it."""

    def __init__(
        self, plan: Plan, environment: Environment, process: EngineProcess, port: int
    ) -> None:
        self.plan, self.environment, self.process, self.port = plan, environment, process, port
        self.endpoint = Endpoint(f"http://127.0.0.1:{port}", timeout=10)
        self.machine: Machine = this_machine()
        self.prediction: PagedPrediction | CellsPrediction = plan.predict()
        self.startup_seconds = 0.0
        self.replayed = False

    @property
    def says(self) -> str:
        """What this is, in a line."""
        package, version = self.environment.package, self.environment.version
        return f"live: {package} {version} on {self.machine.says}"

    @property
    def log_text(self) -> str:
        """What the engine has printed."""
        return "\n".join(self.process.lines)

    def report(self) -> LogReport:
        """Return the start-up log, every number predicted and explained."""
        return report_of(self.plan, self.log_text)

    def readings(self) -> Readings:
        """Return what its metrics endpoint says now. Raises `NoAnswer`."""
        reply = self.endpoint.get("/metrics")
        found = read_metrics(reply.text) if reply.status == 200 else None
        if found is None:
            raise NoAnswer(f"{self.endpoint.base}/metrics", "holds no metrics of an engine")
        return found

    def send(
        self,
        requests: Iterable[Request],
        *,
        name: str = "load",
        remap: bool = True,
        progress: bool = False,
        **options: Any,
    ) -> Load:
        """Send requests, at their arrival times, and return what came back; see `send_load`.

        With `remap`, prompts known by length alone, and made-up ids, become ids of the model's
        vocabulary. `progress` shows a bar of the answers. An interrupt ends all of them at once.
        """
        asked = list(with_real_ids(requests, self.vocab_size) if remap else requests)
        own = Endpoint(self.endpoint.base, timeout=self.endpoint.timeout)
        with progress_bar(name, len(asked), progress) as done, cut_on_interrupt(own):
            return send_load(
                own, self.plan.engine, self.plan.name, asked, name=name,
                rss_bytes=self.rss_bytes, on_answer=done, **options,
            )  # fmt: skip

    @property
    def vocab_size(self) -> int:
        """Tokens of the model's vocabulary."""
        return vocab_size_of(self.plan.model)

    def rss_bytes(self) -> int | None:
        """Return the resident bytes of all its processes; None where the system does not say."""
        return self.process.rss_bytes()

    def stop(self) -> None:
        """End the engine and all that it started; may be called again."""
        self.process.stop()

    def __enter__(self) -> "RunningEngine":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def start(
    plan: Plan,
    *,
    progress: bool = True,
    timeout: float | None = None,
    check: bool = True,
    environment: Environment | None = None,
    environ: "dict[str, str] | None" = None,
) -> RunningEngine:
    """Start an engine and return it when it answers; what fails or is interrupted leaves nothing.

    `timeout` is in seconds (else 300 for vLLM, 60 for llama.cpp). `check=False` lets the engine
    itself refuse what the plan would refuse; `environ` adds environment variables. Raises
    `EngineUnavailable` where it is not installed, and `EngineFailed` with the engine's own words.
    """
    found = environment or require_environment(plan.engine)
    if check:
        plan.check(found)
    plan.predict()  # a model or setting without a prediction is told before anything starts
    port = free_port()
    command = plan.command(found.python, port)
    variables = {**plan.environ(_cache_folder(plan.engine)), **(environ or {})}
    process = EngineProcess(plan.engine, command, variables)
    try:
        engine = RunningEngine(plan, found, process, port)
        with progress_line(plan.engine, progress) as tell:
            limit = PATIENCE[plan.engine] if timeout is None else timeout
            engine.startup_seconds = process.wait_until(
                lambda: _answers(engine.endpoint), timeout=limit, on_wait=tell
            )
    except BaseException as error:
        process.stop()
        if isinstance(error, EngineFailed):
            raise explain(error, process.lines) from None
        raise
    return engine


def report_of(plan: Plan, text: str) -> LogReport:
    """Return an engine's start-up log explained, with what only the plan knows.

    vLLM prints a size in GiB with two digits; the plan knows its bytes.
    """
    if isinstance(plan, LlamaCppPlan):
        return explain_log(text, config=config_of(plan.model))
    settings: dict[str, Any] = {"tp": plan.tp, "block_size": plan.block_size}
    settings |= {"cache_dtype": plan.stored_dtype, "max_model_len": plan.max_model_len}
    return explain_log(text, config=config_of(plan.model), **settings)


def _answers(endpoint: Endpoint) -> bool:
    try:
        return endpoint.get("/health", timeout=2.0).status == 200
    except NoAnswer:
        return False


def _cache_folder(engine: str) -> Path:
    folder = user_dir() / "engines" / engine
    folder.mkdir(parents=True, exist_ok=True)
    return folder
