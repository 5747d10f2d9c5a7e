/* A matrix times one vector or many, where each row of the matrix comes from memory once.
 *
 * One vector: memory is what waits, so rows are kept in a narrow form and widened on the fly.
 * Many vectors: four rows at a time are widened into a buffer, then used for all of them.
 */
#include "fast_numbers.h"

#define AHEAD 4096 /* bytes asked for in advance; a processor by itself stops at a page's end */

typedef struct {
  const uint8_t *data; /* rows one behind the other */
  const float *bias;   /* (rows,) or NULL */
  int64_t kind, rows, columns;
} Matrix;

/* One row times one vector; columns that make no whole group are float32 (`fast_pack.py`). */
INLINE float dot_kind(int kind, const uint8_t *row, const float *x, int64_t n) {
  Lanes sums[PARTS] = {{0}}, more[PARTS] = {{0}}, w[PARTS];
  const int64_t step = GROUP_BYTES[kind];
  int64_t i = 0;
  for (; i + 2 * GROUP <= n; i += 2 * GROUP, row += 2 * step) {
    for (int64_t line = 0; line < 2 * step; line += 64) __builtin_prefetch(row + AHEAD + line);
    widen_group(kind, row, w);
    for (int p = 0; p < PARTS; p++) sums[p] += w[p] * LOAD(x + i + p * WIDTH);
    widen_group(kind, row + step, w);
    for (int p = 0; p < PARTS; p++) more[p] += w[p] * LOAD(x + i + GROUP + p * WIDTH);
  }
  for (; i + GROUP <= n; i += GROUP, row += step) {
    widen_group(kind, row, w);
    for (int p = 0; p < PARTS; p++) sums[p] += w[p] * LOAD(x + i + p * WIDTH);
  }
  Lanes all = {0};
  for (int p = 0; p < PARTS; p++) all += sums[p] + more[p];
  return total(all) + (i < n ? dot((const float *)row, x + i, n - i) : 0);
}

INLINE void widen_kind(int kind, const uint8_t *row, int64_t n, float *to) {
  Lanes w[PARTS];
  for (int64_t i = 0; i < n; i += GROUP, row += GROUP_BYTES[kind]) {
    for (int64_t line = 0; line < GROUP_BYTES[kind]; line += 64)
      __builtin_prefetch(row + AHEAD + line);
    widen_group(kind, row, w);
    for (int p = 0; p < PARTS; p++) *(Loose *)(to + i + p * WIDTH) = w[p];
  }
}

/* The compiler writes one loop for each kind. */
#define FOR_KIND(kind, call)                      \
  switch (kind) {                                 \
    case BFLOAT16: call(BFLOAT16); break;         \
    case EIGHT_BITS: call(EIGHT_BITS); break;     \
    case FOUR_BITS: call(FOUR_BITS); break;       \
    default: call(FLOAT32);                       \
  }

static const uint8_t *row_of(const Matrix *m, int64_t row) {
  int64_t n = m->columns;
  return m->data + row * (m->kind == FLOAT32 ? 4 * n : n / GROUP * GROUP_BYTES[m->kind & 3]);
}

static const float *wide_row(const Matrix *m, int64_t row, float *room) {
  const uint8_t *from = row_of(m, row);
  if (m->kind == FLOAT32) return (const float *)from;
#define WIDEN(kind) widen_kind(kind, from, m->columns, room)
  FOR_KIND(m->kind, WIDEN)
  return room;
}

static float dot_row(const Matrix *m, int64_t row, const float *x) {
  float sum = 0;
#define DOT(kind) sum = dot_kind(kind, row_of(m, row), x, m->columns)
  FOR_KIND(m->kind, DOT)
  return sum;
}

/* ROWS rows times `cols` vectors that lie `n` apart; `cols` is known when this is compiled. */
INLINE void tile_of(int cols, const float *const *w, const float *x, int64_t n,
                    float out[ROWS][COLS]) {
  Lanes sums[ROWS][COLS], v[COLS];
  UNROLL for (int r = 0; r < ROWS; r++)
    UNROLL for (int c = 0; c < cols; c++) sums[r][c] = (Lanes){0};
  int64_t i = 0;
  for (; i + WIDTH <= n; i += WIDTH) {
    for (int c = 0; c < cols; c++) v[c] = LOAD(x + c * n + i);
    for (int r = 0; r < ROWS; r++)
      for (int c = 0; c < cols; c++) sums[r][c] += LOAD(w[r] + i) * v[c];
  }
  UNROLL for (int r = 0; r < ROWS; r++)
    UNROLL for (int c = 0; c < cols; c++) out[r][c] = total(sums[r][c]);
  for (; i < n; i++)
    for (int r = 0; r < ROWS; r++)
      for (int c = 0; c < cols; c++) out[r][c] += w[r][i] * x[c * n + i];
}

static void tile(int cols, const float *const *w, const float *x, int64_t n,
                 float out[ROWS][COLS]) {
  if (cols == 1) tile_of(1, w, x, n, out);
  else if (cols == 2) tile_of(2, w, x, n, out);
#if COLS > 2
  else if (cols == 3) tile_of(3, w, x, n, out);
  else tile_of(COLS, w, x, n, out);
#endif
}

/* Rows `first` to `end` of `m` times `vectors` rows of x; added to `out` or put there. */
static void multiply(const Matrix *m, int64_t first, int64_t end, const float *x, int64_t vectors,
                     float *out, int64_t stride, int add, float *room) {
  for (int64_t row = first; row < end; row += vectors == 1 ? 1 : ROWS) {
    int rows = vectors == 1 ? 1 : end - row < ROWS ? (int)(end - row) : ROWS;
    const float *w[ROWS] = {0};
    for (int r = 0; r < ROWS && vectors > 1; r++)
      w[r] = r < rows ? wide_row(m, row + r, room + r * m->columns) : w[0];
    for (int64_t v = 0; v < vectors; v += COLS) {
      int cols = vectors - v < COLS ? (int)(vectors - v) : COLS;
      float sums[ROWS][COLS];
      if (vectors == 1) sums[0][0] = dot_row(m, row, x);
      else tile(cols, w, x + v * m->columns, m->columns, sums);
      for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++) {
          float *to = out + (v + c) * stride + row + r;
          *to = sums[r][c] + (m->bias ? m->bias[row + r] : 0) + (add ? *to : 0);
        }
    }
  }
}
