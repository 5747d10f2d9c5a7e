/* New tokens through a whole Llama: ids in, logits out, keys and values written to the cache.
 *
 * All threads walk through the layers together, so a step starts them once and not for every
 * product. Left out: a long prompt, for which the library's product is better (`fast_prefill.py`).
 */
#include "fast_layers.h"
#ifdef _OPENMP /* the threads that torch has already, if they are of the same library */
#include <omp.h>
#else
#include <pthread.h>
#endif

static int64_t room_of(const Step *s) { /* numbers that a thread needs for itself */
  int64_t rows = s->tokens < MANY ? ROWS : MANY_ROWS, product = rows * s->m->widest;
  int64_t group = s->m->heads / s->m->kv_heads;
  int64_t attention = room_to_attend(group, s->m->head_dim);
  return product > attention ? product : attention;
}

/* Lay out the work space; return how many numbers it takes. */
static int64_t prepare(Step *s) {
  const Model *m = s->m;
  int64_t kv_len = s->r.past + s->r.q_len;
  s->tokens = s->r.batch * s->r.q_len;
  s->q_size = m->heads * m->head_dim, s->kv_size = m->kv_heads * m->head_dim;
  s->span = s->r.q_len > QUERIES ? kv_len : SPAN;
  s->splits = (kv_len + s->span - 1) / s->span;
  s->threads = s->r.threads < MOST_THREADS ? (int)s->r.threads : MOST_THREADS;
  int64_t sizes[] = {s->tokens * m->hidden, s->tokens * m->hidden, 2 * s->tokens * m->inner,
                     s->tokens * m->heads * s->splits * (m->head_dim + 2),
                     s->tokens < MANY ? 0 : panels_of(s->tokens) * WIDTH * m->widest,
                     s->tokens * (s->q_size + 2 * s->kv_size), s->tokens * s->q_size};
  float **places[] = {&s->x, &s->h, &s->act, &s->parts, &s->turned, &s->r.qkv, &s->r.mix};
  int64_t used = s->threads * room_of(s), asked = s->r.layer >= 0;
  for (int i = 0; i < 7; i++) {
    int given = i == 3 ? 0 : asked; /* attention alone: qkv and mix are the caller's */
    if (!given) *places[i] = s->r.space + used, used += sizes[i];
  }
  return used;
}

static void walk(Worker *w) {
  Step *s = w->s;
  const Model *m = s->m;
  if (s->r.layer >= 0) {
    w->layer = s->r.layer;
    attention(w);
    return;
  }
  int64_t n = s->tokens, last = s->r.batch * s->r.logits_of;
  share(w, n, embed);
  for (w->layer = 0; w->layer < m->layers; w->layer++) {
    turn(w, s->h, n, m->hidden);
    share(w, pieces_of_qkv(w), project);
    attention(w);
    turn(w, s->r.mix, n, s->q_size);
    share(w, pieces(s, matrix(w, O), n), project_out);
    share(w, n, norm_mlp);
    turn(w, s->h, n, m->hidden);
    share(w, pieces(s, matrix(w, GATE), n), gate_up);
    turn(w, s->act, n, m->inner);
    share(w, pieces(s, matrix(w, DOWN), n), down);
    if (w->layer + 1 < m->layers) share(w, n, norm_next);
  }
  share(w, last, norm_last);
  turn(w, s->h, last, m->hidden);
  share(w, pieces(s, m->matrices + m->layers * PER_LAYER, last), head);
}

static void work_as(Step *s, int thread) {
  Worker w = {s, 0, s->r.space + thread * room_of(s), thread};
  walk(&w);
}

#ifdef _OPENMP
static void together(Step *s) {
#pragma omp parallel num_threads(s->threads)
  {
#pragma omp single
    s->threads = omp_get_num_threads(); /* there may be fewer than asked for */
    work_as(s, omp_get_thread_num());
  }
}
#else
typedef struct {
  Step *s;
  int thread;
} Start;

static void *begin(void *start) {
  work_as(((Start *)start)->s, ((Start *)start)->thread);
  return 0;
}

static void together(Step *s) {
  pthread_t others[MOST_THREADS];
  Start starts[MOST_THREADS];
  for (int i = 1; i < s->threads; i++) {
    starts[i] = (Start){s, i};
    pthread_create(&others[i], 0, begin, &starts[i]);
  }
  work_as(s, 0);
  for (int i = 1; i < s->threads; i++) pthread_join(others[i], 0);
}
#endif

/* Return how many numbers of work space a run takes. */
int64_t fast_space(const Model *m, const Run *r) {
  Step s = {.m = m, .r = *r};
  return prepare(&s);
}

/* Run the new tokens through all layers, or through the attention of one. */
void fast_run(const Model *m, const Cache *c, const Run *r) {
  Step s = {.m = m, .c = c, .r = *r};
  prepare(&s);
  together(&s);
}

#define STRIP (1 << 14)

/* Read `n` numbers once, by all threads, each in ROWS strips at a time as the products do; what
 * comes back keeps the reading from being left out. */
float fast_read(const float *from, int64_t n, int64_t threads) {
  float sum = 0;
  for (int64_t i = n / (ROWS * STRIP) * (ROWS * STRIP); i < n; i++) sum += from[i];
#pragma omp parallel for num_threads(threads) reduction(+ : sum) schedule(dynamic)
  for (int64_t start = 0; start <= n - ROWS * STRIP; start += ROWS * STRIP) {
    Lanes sums[ROWS] = {{0}};
    for (int64_t i = 0; i < STRIP; i += WIDTH)
      UNROLL for (int r = 0; r < ROWS; r++) {
        const float *place = from + start + r * STRIP + i;
        if (i % 16 == 0) __builtin_prefetch(place + AHEAD / 4);
        sums[r] += LOAD(place);
      }
    for (int r = 0; r < ROWS; r++) sum += total(sums[r]);
  }
  return sum;
}
