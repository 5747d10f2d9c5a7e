# %% [markdown]
# # 13 Interview self-check
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/13_interview.ipynb)
#
# **The question.** Could I explain it to somebody who asks back?

# %% [markdown]
# **After this chapter you can**
#
# - say which chapters you can skim, and which to read again, from your own answers;
# - answer a question in 30 seconds or in two minutes, with its scope first;
# - sit through a timed interview, mark yourself by a rubric, and bring back each miss until it stays.

# %% tags=["setup"]
import sys

if "google.colab" in sys.modules:  # your own machine needs nothing here
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install -q gguf pint")
    source = "git+https://github.com/kvlab/kvlab@main"
    get_ipython().run_line_magic("pip", f"install -q --no-deps {source}")
    from kvlab.doctor.colab import prepare

    print(prepare(weights=False))

# %%
from kvlab.figures.course_map import chapter_line

chapter_line("13")

# %% [markdown]
# **Core** 30 minutes: the mock interview of section 5. The rest is practice around it, in any order, as often as you like. Nothing here needs a model or a GPU.
#
# **Your answers stay on this machine**, in one small file. Each is written the moment you give it: if the kernel dies, you lose at most the answer under way. Section 6 shows the record and deletes it. The self-checks of all chapters and `kvlab quiz` in a terminal use the same file, so what you missed there comes back here.
#
# **The keyboard is enough.** Tab moves on, Enter checks what you typed, Space presses a button or ticks a box, and arrows move in a list.

# %% [markdown]
# <a id="diagnostic"></a>
# ## 1. Where do I stand?
# **Practice · 5 minutes**
#
# Ten questions, one for each chapter of the interview path. A chapter whose question you get right at the first try may be skimmed. One question is thin evidence, so skim it; don't throw it away. The advice appears when all ten are answered.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.diagnostic import diagnostic

diagnostic()

# %% [markdown]
# What the advice does with ten answers is simple enough to see. Here somebody missed chapters 06 and 11 only:

# %%
from kvlab.course.diagnostic import ASKED_ABOUT, advise
from kvlab.figures.chapter_advice import chapter_advice

chapter_advice(advise({chapter: chapter not in ("06", "11") for chapter in ASKED_ABOUT}))

# %% [markdown]
# <a id="practice"></a>
# ## 2. Practise a topic
# **Practice · 5 minutes**
#
# Choose a topic, or *misses that are due*. Either can be narrowed to a level. Numbers are fresh each time, so a remembered answer doesn't help. A wrong answer says why it is wrong where we know the slip. Once you have looked at the answer, a right one to the same numbers no longer counts.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.practice import practice

practice()

# %% [markdown]
# <a id="spoken"></a>
# ## 3. Speak, then mark yourself
# **Practice · 3 minutes**
#
# Open questions are answered aloud. Then you see a 30-second answer, a two-minute answer and a rubric, and you tick the points that you made. **The first point is always the scope**: which model, which dtype, what is counted. Read one before you do it:

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.course.bank import find_question
from kvlab.course.practice import spoken_answer
from kvlab.figures.cards import feedback

opened = find_question("02-is-it-linear")
feedback("solution", f"{opened.text}\n\n{spoken_answer(opened)}", heading="An open question")

# %% [markdown]
# How many points are enough? A spoken answer to a rubric of five makes points 2, 3, 4 and 5. Does it count?

# %% tags=["predict", "widget", "nbval-ignore-output"]
from kvlab.widgets.predict import predict, reveal

predict(
    "Four of five points, all but the first: does it count? 1 for yes, 0 for no.", key="13-mark"
)

# %%
from kvlab.course.practice import own_mark

for made in ({1, 2, 3, 4, 5}, {1, 2, 3, 4}, {2, 3, 4, 5}, {1, 2, 3}):
    verdict, counts = own_mark(made, total=5)
    print(f"points {sorted(made)}: {verdict}, {'counts' if counts else 'does not count'}")
reveal("13-mark", int(own_mark({2, 3, 4, 5}, total=5)[1]), remark="The scope is missing.")

# %% [markdown]
# A number without its scope can be right for one model and wrong for the next. Whoever asks back will ask for just that.

# %% [markdown]
# <a id="review"></a>
# ## 4. Bring a miss back, later and later
# **Practice · 4 minutes**
#
# A miss that you repeat at once is only read again. It is remembered when it comes back after a gap, and each gap may be longer than the last. This is the whole rule:


# %%
def next_day(answers):  # answers: (day, right), oldest first
    gaps, due, step = (1, 3, 7, 14, 28, 56), None, 0
    for day, right in answers:
        if not right:
            due, step = day + gaps[0], 0
        elif due is not None and day >= due:
            step += 1
            due = day + gaps[step] if step < len(gaps) else None
    return due  # None: never missed, or learnt


# %% [markdown]
# You missed a question on day 0. You got it right on day 1, and again on day 4. On which day does it come back?

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict("Missed on day 0, right on days 1 and 4. Back on day ...", unit="", key="13-back")

# %%
from kvlab.figures.review_days import ReviewLine, review_days

histories = {
    "missed today": [(5, False)],
    "right too early": [(0, False), (0, True)],
    "right twice": [(0, False), (1, True), (4, True)],
    "missed again": [(0, False), (1, True), (4, False)],
}
lines = [ReviewLine(name, of, next_day(of)) for name, of in histories.items()]
review_days(lines, today=5, title="When a miss comes back")

# %% [markdown]
# And your guess beside it:

# %%
reveal("13-back", next_day(histories["right twice"]), remark="Seven days after the second.")

# %% [markdown]
# A right answer before the day it is due changes nothing: that was memory of the last minute. The package works on the dates in your file. Here are a thousand made-up histories, both ways:

# %%
from datetime import date, timedelta
from random import Random

from kvlab.course.practice import next_due

random, start = Random(13), date(2026, 1, 1)
for _ in range(1000):
    days = sorted(random.sample(range(200), 8))
    answers = [(day, random.random() < 0.7) for day in days]
    kept = [{"when": f"{start + timedelta(day)}T12:00", "right": right} for day, right in answers]
    due, expected = next_due(kept), next_day(answers)
    assert (None if due is None else (due[0] - start).days) == expected
print("the rule above and the package: the same day in 1,000 histories")

# %% [markdown]
# Now yours. The panel asks what is due today, the longest due first. If nothing is, it says when the next one comes.

# %% tags=["widget", "nbval-ignore-output"]
practice("misses that are due")

# %% [markdown]
# <a id="mock"></a>
# ## 5. The mock interview
# **Core · 30 minutes**
#
# Mixed topics, typed and spoken questions, a clock, no hints, and no word about your answers before the end. You can stop the clock; the question is hidden while it stands. A question that you leave doesn't come back. At the end you mark what you said, then read the report.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.mock_interview import mock_interview

mock_interview(minutes=30)

# %% [markdown]
# For ten minutes, `mock_interview(minutes=10, spoken=1, graded=3)`. What is drawn is mixed, and no topic comes twice while others are left:

# %%
from kvlab.course.mock import GRADED, SPOKEN, draw_interview

for seed in range(50):
    drawn = [asked.question for asked in draw_interview(seed)]
    typed = [question.topic for question in drawn if question.kind != "open"]
    assert len(drawn) == SPOKEN + GRADED and len(set(typed)) == GRADED
print(f"{SPOKEN} spoken and {GRADED} typed; {GRADED} different topics among the typed, 50 times")

# %% [markdown]
# Nothing on that page knows an answer before the end. Here is an interview with a made-up clock, to see the time run out: what comes late isn't taken.

# %%
from kvlab.course.interview import Interview

clock = [0.0]
talk = Interview(draw_interview(1, spoken=0, graded=2), minutes=5, now=lambda: clock[0])
talk.go()
clock[0] = 120.0
talk.go()  # stops the clock
clock[0] = 900.0
print(f"stopped at {talk.watch.seconds:.0f} s; a pause of {900 - 120} s costs nothing")
talk.go()  # goes on
clock[0] = 900.0 + 181.0
print(f"taken: {talk.answer('A')}; the interview is {talk.stage}")

# %% [markdown]
# <a id="record"></a>
# ## 6. Your record
# **Practice · 2 minutes**
#
# The last answer to each question counts. Chapters with misses are named, the one with most first. Press *count again* after you have practised. *Delete my answers* asks once, then removes the file and every copy.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.practice_panel import record_panel

record_panel()

# %% [markdown]
# Such a table for a learner who exists only here. **How to read it:** the bar is all questions of the topic; what is filled is right.

# %%
from kvlab.course.practice import score_by_topic
from kvlab.figures.score_card import score_card

names = ["hit-tokens", "date-on-top", "when-to-share"]
names = [*(f"07-{name}" for name in names), "10-which-shortage", "10-pool-looks-full"]
answered = {name: [{"right": name != "07-date-on-top"}] for name in names[:-1]}
score_card(score_by_topic(answered, [find_question(name) for name in names]), title="Somebody")

# %% [markdown]
# <a id="sheet"></a>
# ## 7. The course on one page
# **Practice · 1 minute**
#
# Three takeaways of every chapter. None of these numbers is written down anywhere: each is worked out when you run the cell. Where a chapter's own takeaway came from a run on a model, the sheet has one that a formula gives. To print it, run the two lines below in a cell of your own and open the file in a browser: one page of A4.
#
# ```python
# from kvlab.figures.takeaway_sheet import save_sheet
# save_sheet("takeaways.html")
# ```

# %%
from kvlab.figures.takeaway_sheet import takeaway_sheet

takeaway_sheet()

# %% [markdown]
# ## Your turn
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.
#
# **13-a Mark yourself by the rule.** Write `counts(made, total)`: whether a spoken answer counts as right. `made` is the list of the points you made, numbered from 1; the rubric has `total` points. All but one are needed, and never without point 1, the scope. Roughly 1 line.


# %% tags=["exercise"]
def counts(made, total):
    # your code
    ...


# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("13-a", counts)

# %% tags=["hint"]
hint_steps("13-a")

# %% tags=["solution"]
solution("13-a")

# %% [markdown]
# **13-b One case from end to end.** Eight cards of 80 GB, tensor parallel 8; 90 % of each may be used, 18 GB of it are weights and 4 GB overhead. The model has 80 layers, 64 query heads, 8 KV heads and head_dim 128; the cache is in bf16. Each request takes at most 32,768 tokens, its answer included. How many requests fit at once?

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("13-b", answer)

# %% tags=["hint"]
hint_steps("13-b")

# %% tags=["solution"]
solution("13-b")

# %% [markdown]
# ## What interviewers listen for
# Say your answer aloud first, then open it.
#
# <details><summary><b>How large is the KV cache of a 70B model?</b></summary>
# Ask back before you multiply: which model, how many KV heads, which dtype of the cache, how long, how many users, on how many ranks? Then one number with that scope. "70B" names weights, and the cache doesn't contain them.
# </details>
#
# <details><summary><b>You don't know the number. What now?</b></summary>
# Say the formula, say what you assume for each factor, and give the unit. A wrong assumption that is said can be corrected in a sentence; a bare number can't.
# </details>
#
# <details><summary><b>"I read that the other number is twice yours." Who is right?</b></summary>
# Change one assumption at a time: bits or bytes, GB or GiB, pooled or per rank, payload or reserved. Two numbers that disagree mostly count different things.
# </details>

# %% [markdown]
# ## Claims you will meet
# Three cards from earlier chapters, again. Give your verdict first: holds, only if, or wrong. Then say the condition aloud before you read it.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("mqa-92-sessions")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("capacity-and-bandwidth-separate")

# %% [markdown]
# The last one is about a saving. Ask what a number costs besides its bits.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("int4-quarters")

# %% [markdown]
# ## Self-check
# Six questions that interviews like, from six chapters. Come back to this cell another day.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

names = ["02-growth-per-step", "03-many-users", "04-what-does-batching-share"]
names += ["07-hit-tokens", "10-which-shortage", "11-peak"]
quiz(ids=names, seed=13)

# %% [markdown]
# ## Takeaways
# **The answer.** You could, if you say the scope before the number, can recompute what you say, and know which assumption somebody else may have made. Whether you can is what your record says, not how well you remember the page.

# %%
from kvlab.course.practice import STEPS
from kvlab.course.takeaways import load_takeaways
from kvlab.figures.tables import table

takeaways = [
    ("Scope first, then the number", f"without it: {own_mark({2, 3, 4, 5}, 5)[0]}, doesn't count"),
    ("A miss comes back later and later", f"after {', '.join(map(str, STEPS))} days"),
    ("Never repeat what you did not recompute", f"{len(load_takeaways())} takeaways on one page"),
]
table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# <details><summary><b>For instructors</b></summary>
# Let pairs interview each other with one open question: one speaks for 30 seconds, the other ticks points and asks back once. Then collect which point was missed most. Common wrong answer: a number in the first sentence, and its scope in the last.
# </details>

# %% [markdown]
# ## Sources
# - Cepeda et al. 2006, [Distributed practice in verbal recall tasks](https://doi.org/10.1037/0033-2909.132.3.354): gaps between repetitions.
# - Roediger and Karpicke 2006, [Test-enhanced learning](https://doi.org/10.1111/j.1467-9280.2006.01693.x): why being asked beats reading again.
# - Shazeer 2019, [One Write-Head](https://arxiv.org/abs/1911.02150). Ainslie et al. 2023, [GQA](https://arxiv.org/abs/2305.13245). Kwon et al. 2023, [PagedAttention](https://arxiv.org/abs/2309.06180): the three papers that most questions go back to.
# - vLLM, [documentation](https://docs.vllm.ai/). Hugging Face, [cache strategies](https://huggingface.co/docs/transformers/main/kv_cache).
#
# **This is the end of the course.** The map in chapter 00 leads anywhere again.
