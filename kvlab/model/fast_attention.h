/* Attention of new tokens to a cache, where it lies: in one piece or in blocks, nothing gathered.
 *
 * Keys come in pieces of KEYS; the softmax is put together as they come (`blockwise.py` shows it
 * with one query). A column is a token's place in its row of the batch.
 */
#include <math.h>
#include "fast_panels.h"

#define KEYS 64     /* whose scores are held at once */
#define QUERIES 64 /* new tokens of one KV head that a thread takes at once: keys are turned once */
#define SPAN 128    /* columns that a thread takes at once while new tokens are few */
#define FEW 16       /* queries for which it does not pay to turn the keys over */
#define NONE -1e30f /* smaller than any score */

typedef struct {
  float *const *keys, *const *values; /* of each layer, where row 0 and KV head 0 begin */
  int64_t row_stride, head_stride, token_stride; /* in numbers */
  const int64_t *slots; /* (rows, columns): where a column's token lies; NULL: in order */
  int64_t columns;
} Cache;

typedef struct {
  int64_t row, head, first_query, queries; /* which queries of which KV head */
  int64_t start, end;                      /* which columns */
  int64_t group, dim, stride;              /* queries a KV head, head_dim, numbers between tokens */
  int64_t past, lowest, window;            /* column of new token 0; the row's first; 0: no window */
} Piece;

static void rotate(const float *from, int64_t half, const float *cosines, const float *sines,
                   float scale, float *to) {
  for (int64_t i = 0; i < half; i++) {
    float a = from[i], b = from[half + i];
    to[i] = (a * cosines[i] - b * sines[i]) * scale;
    to[half + i] = (b * cosines[i] + a * sines[i]) * scale;
  }
}

static int64_t place_of(const Cache *c, const Piece *p, int64_t column) {
  int64_t slot = c->slots ? c->slots[p->row * c->columns + column] : column;
  return p->row * c->row_stride + p->head * c->head_stride + slot * c->token_stride;
}

/* out, (vectors, width), += coefficients, (vectors, count), times `count` rows of `width`. */
INLINE void outer_of(int vectors, const float *coefficients, int64_t apart, int64_t count,
                     const float *const *rows, int64_t width, float *out) {
  int64_t i = 0;
  for (; i + COLS * WIDTH <= width; i += COLS * WIDTH) {
    Lanes sums[ROWS][COLS];
    UNROLL for (int v = 0; v < vectors; v++)
      UNROLL for (int n = 0; n < COLS; n++) sums[v][n] = LOAD(out + v * width + i + n * WIDTH);
    for (int64_t t = 0; t < count; t++)
      UNROLL for (int v = 0; v < vectors; v++)
        UNROLL for (int n = 0; n < COLS; n++)
          sums[v][n] += coefficients[v * apart + t] * LOAD(rows[t] + i + n * WIDTH);
    UNROLL for (int v = 0; v < vectors; v++)
      UNROLL for (int n = 0; n < COLS; n++)
        *(Loose *)(out + v * width + i + n * WIDTH) = sums[v][n];
  }
  for (int64_t t = 0; t < count && i < width; t++)
    for (int v = 0; v < vectors; v++)
      for (int64_t j = i; j < width; j++)
        out[v * width + j] += coefficients[v * apart + t] * rows[t][j];
}

static void outer(int64_t vectors, const float *coefficients, int64_t apart, int64_t count,
                  const float *const *rows, int64_t width, float *out) {
  for (; vectors > 0; vectors -= ROWS, coefficients += ROWS * apart, out += ROWS * width) {
    if (vectors == 1) outer_of(1, coefficients, apart, count, rows, width, out);
    else if (vectors == 2) outer_of(2, coefficients, apart, count, rows, width, out);
    else if (vectors == 3) outer_of(3, coefficients, apart, count, rows, width, out);
    else outer_of(ROWS, coefficients, apart, count, rows, width, out);
  }
}

/* Scores of KEYS keys for few queries: a dot product each. */
static void score_few(const float *const *keys, int64_t dim, const float *queries, int64_t vectors,
                      float *scores) {
  for (int t = 0; t < KEYS; t += ROWS)
    for (int64_t v = 0; v < vectors; v += COLS) {
      int cols = vectors - v < COLS ? (int)(vectors - v) : COLS;
      float sums[ROWS][COLS];
      tile(cols, keys + t, queries + v * dim, dim, sums);
      for (int c = 0; c < cols; c++)
        for (int r = 0; r < ROWS; r++) scores[(v + c) * KEYS + t + r] = sums[r][c];
    }
}

/* The same for many: the keys are turned over first, then no sum goes across a register. */
static void score_many(const float *const *keys, int64_t dim, const float *queries,
                       int64_t vectors, float *turned, float *scores) {
  for (int t = 0; t < KEYS; t++)
    for (int64_t i = 0; i < dim; i++) turned[i * KEYS + t] = keys[t][i];
  memset(scores, 0, vectors * KEYS * 4);
  for (int64_t i = 0; i < dim; i += KEYS) {
    const float *rows[KEYS];
    int64_t count = dim - i < KEYS ? dim - i : KEYS;
    for (int64_t j = 0; j < count; j++) rows[j] = turned + (i + j) * KEYS;
    outer(vectors, queries + i, dim, count, rows, KEYS, scores);
  }
}

/* Turn the scores of one query, of which `low` to `high` - 1 are seen, into powers.
 * Return by how much what was summed has to shrink: the largest score may be a new one. */
static float soften(float *scores, int64_t low, int64_t high, float *largest, float *sum) {
  for (int64_t t = 0; t < low && t < KEYS; t++) scores[t] = NONE;
  for (int64_t t = high > 0 ? high : 0; t < KEYS; t++) scores[t] = NONE;
  Lanes tops = all_of(*largest), sums = {0};
  float top = *largest;
  for (int t = 0; t < KEYS; t += WIDTH) {
    Lanes some = LOAD(scores + t);
    tops = choose(some > tops, some, tops);
  }
  for (int i = 0; i < WIDTH; i++) top = tops[i] > top ? tops[i] : top;
  for (int t = 0; t < KEYS; t += WIDTH) {
    Lanes powers = exp_below_zero(LOAD(scores + t) - top);
    *(Loose *)(scores + t) = powers;
    sums += powers;
  }
  float shrink = exp_below_zero(all_of(*largest - top))[0];
  *largest = top;
  *sum = *sum * shrink + total(sums);
  return shrink;
}

/* All columns of one piece. `queries` are rotated and scaled, `stride` numbers apart in a token.
 * Each leaves a part: its largest score, its sum, its mix. `parts` are those of the first query's
 * first head; from head to head they lie `apart`, and a token has `heads`. */
static void attend(const Cache *c, const Piece *p, int64_t layer, const float *queries, float *room,
                   float *parts, int64_t apart, int64_t heads) {
  int64_t dim = p->dim, vectors = p->queries * p->group;
  float *q = room, *mixes = q + vectors * dim, *scores = mixes + vectors * dim;
  const float *keys[KEYS], *values[KEYS];
  for (int64_t v = 0; v < vectors; v++) {
    float *part = parts + (v / p->group * heads + v % p->group) * apart;
    memcpy(q + v * dim, queries + v / p->group * p->stride + v % p->group * dim, dim * 4);
    memset(mixes + v * dim, 0, dim * 4);
    part[0] = NONE, part[1] = 0;
  }
  for (int64_t start = p->start; start < p->end; start += KEYS) {
    int64_t count = p->end - start < KEYS ? p->end - start : KEYS;
    for (int64_t t = 0; t < KEYS; t++) { /* behind the end: the last one again, not looked at */
      int64_t at = place_of(c, p, start + (t < count ? t : count - 1));
      keys[t] = c->keys[layer] + at, values[t] = c->values[layer] + at;
      for (int64_t i = 0; i < dim && t < count; i += 16) {
        __builtin_prefetch(keys[t] + i); /* asked for as a whole, they come together */
        __builtin_prefetch(values[t] + i);
      }
    }
    if (vectors < FEW) score_few(keys, dim, q, vectors, scores);
    else score_many(keys, dim, q, vectors, scores + vectors * KEYS, scores);
    for (int64_t v = 0; v < vectors; v++) {
      int64_t column = p->past + p->first_query + v / p->group, low = p->lowest;
      if (p->window && column - p->window + 1 > low) low = column - p->window + 1;
      if (low > column) low = column; /* padding sees itself: no row is empty */
      low = low > start ? low - start : 0;
      int64_t high = column + 1 - start < count ? column + 1 - start : count;
      float *part = parts + (v / p->group * heads + v % p->group) * apart;
      float shrink = soften(scores + v * KEYS, low, high, part, part + 1);
      for (int64_t i = 0; i < dim; i++) mixes[v * dim + i] *= shrink;
    }
    outer(vectors, scores, KEYS, count, values, dim, mixes);
  }
  for (int64_t v = 0; v < vectors; v++)
    memcpy(parts + (v / p->group * heads + v % p->group) * apart + 2, mixes + v * dim, dim * 4);
}

static int64_t room_to_attend(int64_t group, int64_t dim) {
  return QUERIES * group * (2 * dim + KEYS) + dim * KEYS;
}
