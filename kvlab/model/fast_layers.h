/* The phases of a Llama's layer, each cut into pieces that any thread may take.
 *
 * In each phase a thread takes the pieces of its own part, one behind the other in memory, then
 * those that others have not come to; then all meet: nobody starts a product before what it reads
 * is whole.
 */
#include <sched.h>
#include <stdatomic.h>
#include "fast_attention.h"

#define PIECE 16 /* rows of each of the ROWS strips that a thread takes at once */
#define MOST_THREADS 256
enum { Q, K, V, O, GATE, UP, DOWN, PER_LAYER };

typedef struct {
  int64_t layers, hidden, inner, heads, kv_heads, head_dim, vocab, widest;
  double eps;
  const Matrix *matrices;     /* layers x PER_LAYER, then the head */
  const float *const *norms;  /* layers x 2, then the last */
  const int64_t *windows;     /* of each layer in tokens; 0: none */
  const float *embedding, *cosines, *sines; /* (vocab, hidden), (positions, head_dim / 2) */
} Model;

typedef struct {
  const int64_t *ids, *first; /* (batch, q_len) and (batch,): column of the row's first token */
  int64_t batch, q_len, past, logits_of; /* column of new token 0; last tokens that get logits */
  int64_t threads, layer;                /* layer: the one whose attention alone is asked for */
  float *qkv, *mix, *logits, *space;     /* qkv and mix: for attention alone */
} Run;

typedef struct {
  const Model *m;
  const Cache *c;
  Run r;
  int64_t tokens, q_size, kv_size, splits, span;
  float *x, *h, *act, *parts, *turned;
  int threads;
  atomic_int arrived, round;
  struct {
    _Alignas(64) atomic_llong taken; /* a line of its own: nobody else's writes make it slow */
  } parts_of[MOST_THREADS];
} Step;

typedef struct {
  Step *s;
  int64_t layer;
  float *room; /* of this thread alone */
  int thread;
  const float *vectors; /* that are turned over */
  int64_t count, columns;
} Worker;

static void meet(Step *s) {
  int round = atomic_load(&s->round);
  if (atomic_fetch_add(&s->arrived, 1) + 1 == s->threads) {
    atomic_store(&s->arrived, 0);
    for (int i = 0; i < s->threads; i++) atomic_store(&s->parts_of[i].taken, 0);
    atomic_store(&s->round, round + 1);
    return;
  }
  for (int spins = 0; atomic_load(&s->round) == round; spins++)
    if (spins > 4000) sched_yield(); /* somebody else has the processor */
}

static void share(Worker *w, int64_t pieces, void (*work)(Worker *, int64_t)) {
  int threads = w->s->threads;
  for (int i = 0; i < threads; i++) {
    int owner = (w->thread + i) % threads;
    int64_t start = pieces * owner / threads, count = pieces * (owner + 1) / threads - start;
    for (int64_t j; (j = atomic_fetch_add(&w->s->parts_of[owner].taken, 1)) < count;)
      work(w, start + j);
  }
  meet(w->s);
}

/* -- products, a piece of rows at a time ------------------------------------------------- */

static const Matrix *matrix(Worker *w, int which) {
  return w->s->m->matrices + w->layer * PER_LAYER + which;
}

static void turn_piece(Worker *w, int64_t panel) {
  turn_over(w->vectors, w->count, w->columns, panel, w->s->turned);
}

/* Before a product of many vectors, (count, columns). */
static void turn(Worker *w, const float *vectors, int64_t count, int64_t columns) {
  if (count < MANY) return;
  w->vectors = vectors, w->count = count, w->columns = columns;
  share(w, panels_of(count), turn_piece);
}

/* Rows of a matrix that a piece has: `count` from `first` on, and as many behind each `apart`. */
typedef struct {
  int64_t first, count, apart, strips;
} Rows;

/* For few vectors each thread has ROWS strips, and a piece is PIECE rows of each of them. */
static int64_t strip(const Step *s, int64_t rows) {
  return (rows + ROWS * s->threads - 1) / (ROWS * s->threads);
}

static int64_t pieces(const Step *s, const Matrix *m, int64_t vectors) {
  if (vectors >= MANY) return (m->rows + MANY_ROWS - 1) / MANY_ROWS;
  return s->threads * ((strip(s, m->rows) + PIECE - 1) / PIECE);
}

static Rows rows_of(const Step *s, int64_t rows, int64_t piece, int64_t vectors) {
  if (vectors >= MANY) {
    int64_t first = piece * MANY_ROWS;
    return (Rows){first, rows - first < MANY_ROWS ? rows - first : MANY_ROWS, 0, 1};
  }
  int64_t apart = strip(s, rows), each = (apart + PIECE - 1) / PIECE, j = piece % each * PIECE;
  int64_t count = apart - j < PIECE ? apart - j : PIECE;
  return (Rows){piece / each * ROWS * apart + j, count, apart, ROWS};
}

static void product(Worker *w, const Matrix *m, int64_t piece, const float *x, int64_t vectors,
                    float *out, int64_t stride, int add) {
  Rows r = rows_of(w->s, m->rows, piece, vectors);
  if (vectors < MANY)
    multiply(m, r.first, r.apart, r.count, x, vectors, out, stride, add, w->room);
  else
    multiply_many(m, r.first, r.count, w->s->turned, vectors, out, stride, add, w->room);
}

static int64_t pieces_of_qkv(Worker *w) {
  int64_t sum = 0;
  for (int i = Q; i <= V; i++) sum += pieces(w->s, matrix(w, i), w->s->tokens);
  return sum;
}

static void project(Worker *w, int64_t piece) {
  Step *s = w->s;
  float *out = s->r.qkv;
  for (int i = Q; i <= V; i++) {
    int64_t count = pieces(s, matrix(w, i), s->tokens);
    if (piece < count) {
      product(w, matrix(w, i), piece, s->h, s->tokens, out, s->q_size + 2 * s->kv_size, 0);
      return;
    }
    piece -= count, out += matrix(w, i)->rows;
  }
}

static void project_out(Worker *w, int64_t piece) {
  product(w, matrix(w, O), piece, w->s->r.mix, w->s->tokens, w->s->x, w->s->m->hidden, 1);
}

static void down(Worker *w, int64_t piece) {
  product(w, matrix(w, DOWN), piece, w->s->act, w->s->tokens, w->s->x, w->s->m->hidden, 1);
}

static void gate(float *act, const float *up, int64_t n) {
  int64_t i = 0;
  for (; i + WIDTH <= n; i += WIDTH) *(Loose *)(act + i) = silu(LOAD(act + i)) * LOAD(up + i);
  for (; i < n; i++) act[i] = silu(all_of(act[i]))[0] * up[i];
}

static void gate_up(Worker *w, int64_t piece) {
  Step *s = w->s;
  int64_t n = s->m->inner;
  float *up = s->act + s->tokens * n;
  product(w, matrix(w, GATE), piece, s->h, s->tokens, s->act, n, 0);
  product(w, matrix(w, UP), piece, s->h, s->tokens, up, n, 0);
  Rows r = rows_of(s, n, piece, s->tokens);
  for (int64_t t = 0; t < s->tokens; t++)
    for (int64_t i = 0; i < r.strips; i++) {
      int64_t first = r.first + i * r.apart, count = n - first < r.count ? n - first : r.count;
      if (count > 0) gate(s->act + t * n + first, up + t * n + first, count);
    }
}

static void head(Worker *w, int64_t piece) {
  Step *s = w->s;
  const Matrix *m = s->m->matrices + s->m->layers * PER_LAYER;
  product(w, m, piece, s->h, s->r.batch * s->r.logits_of, s->r.logits, s->m->vocab, 0);
}

/* -- norms, a token at a time ------------------------------------------------------------ */

static void norm(Step *s, int64_t token, int64_t which, int64_t to) {
  int64_t n = s->m->hidden;
  const float *x = s->x + token * n, *weight = s->m->norms[which];
  float scale = 1 / sqrtf(dot(x, x, n) / n + (float)s->m->eps);
  for (int64_t i = 0; i < n; i++) s->h[to * n + i] = weight[i] * (x[i] * scale);
}

static void embed(Worker *w, int64_t token) {
  Step *s = w->s;
  int64_t n = s->m->hidden;
  memcpy(s->x + token * n, s->m->embedding + s->r.ids[token] * n, n * 4);
  norm(s, token, 0, token);
}

static void norm_mlp(Worker *w, int64_t token) { norm(w->s, token, 2 * w->layer + 1, token); }
static void norm_next(Worker *w, int64_t token) { norm(w->s, token, 2 * w->layer + 2, token); }

static void norm_last(Worker *w, int64_t item) { /* of the tokens that get logits */
  Step *s = w->s;
  int64_t row = item / s->r.logits_of, i = item % s->r.logits_of;
  norm(s, (row + 1) * s->r.q_len - s->r.logits_of + i, 2 * s->m->layers, item);
}

/* -- attention ---------------------------------------------------------------------------- */

static void remember(Worker *w, int64_t token) { /* rotate; write key and value to the cache */
  Step *s = w->s;
  const Model *m = s->m;
  int64_t row = token / s->r.q_len, column = s->r.past + token % s->r.q_len, d = m->head_dim;
  int64_t place = column > s->r.first[row] ? column - s->r.first[row] : 0;
  const float *cosines = m->cosines + place * d / 2, *sines = m->sines + place * d / 2;
  float *q = s->r.qkv + token * (s->q_size + 2 * s->kv_size), *k = q + s->q_size;
  for (int64_t i = 0; i < m->heads; i++) {
    rotate(q + i * d, d / 2, cosines, sines, 1 / sqrtf(d), q + i * d);
  }
  for (int64_t i = 0; i < m->kv_heads; i++) {
    Piece p = {.row = row, .head = i};
    int64_t at = place_of(s->c, &p, column);
    rotate(k + i * d, d / 2, cosines, sines, 1, s->c->keys[w->layer] + at);
    memcpy(s->c->values[w->layer] + at, k + s->kv_size + i * d, d * 4);
  }
}

static int64_t blocks(const Step *s) { return (s->r.q_len + QUERIES - 1) / QUERIES; }

static void attend_piece(Worker *w, int64_t item) {
  Step *s = w->s;
  const Model *m = s->m;
  int64_t split = item % s->splits, block = item / s->splits % blocks(s), q = block * QUERIES;
  int64_t head = item / s->splits / blocks(s) % m->kv_heads;
  Piece p = {.row = item / s->splits / blocks(s) / m->kv_heads, .head = head, .first_query = q,
             .queries = s->r.q_len - q < QUERIES ? s->r.q_len - q : QUERIES,
             .group = m->heads / m->kv_heads, .dim = m->head_dim, .past = s->r.past,
             .stride = s->q_size + 2 * s->kv_size, .window = m->windows[w->layer]};
  int64_t token = p.row * s->r.q_len + q, column = p.past + q, apart = s->splits * (p.dim + 2);
  p.lowest = s->r.first[p.row];
  int64_t low = p.lowest < column ? p.lowest : column;
  if (p.window && column - p.window + 1 > low) low = column - p.window + 1;
  p.start = split * s->span > low ? split * s->span : low;
  p.end = column + p.queries < (split + 1) * s->span ? column + p.queries : (split + 1) * s->span;
  attend(s->c, &p, w->layer, s->r.qkv + token * p.stride + head * p.group * p.dim, w->room,
         s->parts + (token * m->heads + head * p.group) * apart + split * (p.dim + 2), apart,
         m->heads);
}

static void combine(Worker *w, int64_t token) { /* the parts of each query to one mix */
  Step *s = w->s;
  int64_t d = s->m->head_dim;
  for (int64_t head = token * s->m->heads; head < (token + 1) * s->m->heads; head++) {
    const float *parts = s->parts + head * s->splits * (d + 2);
    float *mix = s->r.mix + head * d, largest = NONE, sum = 0;
    memset(mix, 0, d * 4);
    for (int64_t i = 0; i < s->splits; i++)
      largest = parts[i * (d + 2)] > largest ? parts[i * (d + 2)] : largest;
    for (int64_t i = 0; i < s->splits; i++) {
      const float *part = parts + i * (d + 2);
      float weight = exp_below_zero(all_of(part[0] - largest))[0];
      sum += weight * part[1];
      for (int64_t j = 0; j < d; j++) mix[j] += weight * part[j + 2];
    }
    for (int64_t j = 0; j < d; j++) mix[j] /= sum;
  }
}

static void attention(Worker *w) {
  Step *s = w->s;
  share(w, s->tokens, remember);
  share(w, s->r.batch * s->m->kv_heads * blocks(s) * s->splits, attend_piece);
  share(w, s->tokens, combine);
}
