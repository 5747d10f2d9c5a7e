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

/* ROWS rows, far apart, times one vector; columns that make no whole group are float32
 * (`fast_pack.py`). Each row is a stream of its own to the processor, which fetches several at
 * once: four give 1.3 times (float32) to 2 times (four bits) the bytes a second of one. */
INLINE void dot_kind(int kind, const uint8_t *const *from, const float *x, int64_t n, float *out) {
  Lanes sums[ROWS][2], v[PARTS], w[PARTS];
  const uint8_t *row[ROWS];
  UNROLL for (int r = 0; r < ROWS; r++) {
    row[r] = from[r];
    sums[r][0] = sums[r][1] = (Lanes){0};
  }
  int64_t i = 0;
  for (; i + GROUP <= n; i += GROUP) {
    for (int p = 0; p < PARTS; p++) v[p] = LOAD(x + i + p * WIDTH);
    UNROLL for (int r = 0; r < ROWS; r++) {
      for (int64_t line = 0; line < GROUP_BYTES[kind]; line += 64)
        __builtin_prefetch(row[r] + AHEAD + line);
      widen_group(kind, row[r], w);
      for (int p = 0; p < PARTS; p++) sums[r][p % 2] += w[p] * v[p];
      row[r] += GROUP_BYTES[kind];
    }
  }
  UNROLL for (int r = 0; r < ROWS; r++) {
    out[r] = total(sums[r][0] + sums[r][1]);
    if (i < n) out[r] += dot((const float *)row[r], x + i, n - i);
  }
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

static void dot_rows(const Matrix *m, const int64_t *rows, const float *x, float *out) {
  const uint8_t *from[ROWS];
  for (int r = 0; r < ROWS; r++) from[r] = row_of(m, rows[r]);
#define DOT(kind) dot_kind(kind, from, x, m->columns, out)
  FOR_KIND(m->kind, DOT)
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

/* ROWS times `count` rows of `m`, those of each ROWS `apart`, times `vectors` rows of x; added to
 * `out` or put there. Rows that `m` does not have are left out; the first is always one of its. */
static void multiply(const Matrix *m, int64_t first, int64_t apart, int64_t count, const float *x,
                     int64_t vectors, float *out, int64_t stride, int add, float *room) {
  for (int64_t i = first; i < first + count && i < m->rows; i++) {
    int64_t rows[ROWS];
    const float *w[ROWS] = {0};
    int have = 1;
    for (int r = 0; r < ROWS; r++) {
      rows[r] = i + r * apart < m->rows ? i + r * apart : i;
      if (rows[r] != i) have = r + 1;
      if (vectors > 1) w[r] = r < have ? wide_row(m, rows[r], room + r * m->columns) : w[0];
    }
    for (int64_t v = 0; v < vectors; v += COLS) {
      int cols = vectors - v < COLS ? (int)(vectors - v) : COLS;
      float sums[ROWS][COLS];
      if (vectors > 1) tile(cols, w, x + v * m->columns, m->columns, sums);
      else {
        float alone[ROWS];
        dot_rows(m, rows, x, alone);
        for (int r = 0; r < ROWS; r++) sums[r][0] = alone[r];
      }
      for (int r = 0; r < have; r++)
        for (int c = 0; c < cols; c++) {
          float *to = out + (v + c) * stride + rows[r];
          *to = sums[r][c] + (m->bias ? m->bias[rows[r]] : 0) + (add ? *to : 0);
        }
    }
  }
}
