/* A matrix times many vectors, near the rate at which this processor multiplies.
 *
 * The vectors are turned over first, WIDTH of them to a panel: then a number of the matrix meets
 * one of each vector, no sum goes across a register, and a tile of sums stays in registers.
 */
#include "fast_products.h"

#ifdef __AVX512F__
#define TALL 8 /* rows of a tile: TALL x PANELS sums, and what they need, have to fit */
#else
#define TALL 4
#endif
#define PANELS 3
#define MANY_ROWS 32 /* rows that a thread takes at once: they stay near while all vectors pass */
#define SOON 4        /* numbers of the vectors that are asked for in advance */
#define MANY (WIDTH + 1) /* vectors from which turning them over pays: more than a panel */

static int64_t panels_of(int64_t vectors) { return (vectors + WIDTH - 1) / WIDTH; }

/* Panels are kept PANELS together, the last ones fewer: number k of all of them lies together. */
static int64_t panels_with(int64_t panel, int64_t all) {
  int64_t start = panel / PANELS * PANELS;
  return all - start < PANELS ? all - start : PANELS;
}

/* Turn over panel `panel` of x, (vectors, n). */
static void turn_over(const float *x, int64_t vectors, int64_t n, int64_t panel, float *turned) {
  int64_t together = panels_with(panel, panels_of(vectors)), apart = together * WIDTH;
  float *to = turned + (panel / PANELS * PANELS * n + panel % PANELS) * WIDTH;
  const float *from = x + panel * WIDTH * n;
  int64_t lanes = vectors - panel * WIDTH < WIDTH ? vectors - panel * WIDTH : WIDTH;
  for (int64_t k = 0; k < n; k++, to += apart) {
    float all[WIDTH] = {0};
    if (lanes == WIDTH)
      for (int lane = 0; lane < WIDTH; lane++) all[lane] = from[lane * n + k];
    else
      for (int lane = 0; lane < lanes; lane++) all[lane] = from[lane * n + k];
    memcpy(to, all, sizeof all);
  }
}

/* Meanwhile the rows of a later piece are asked for, `step` bytes with each number. */
INLINE void tile_many(int panels, const float *const *w, const float *turned, int64_t n,
                      const uint8_t *later, int64_t step, Lanes out[TALL][PANELS]) {
  Lanes sums[TALL][PANELS], v[PANELS];
  for (int r = 0; r < TALL; r++)
    for (int p = 0; p < panels; p++) sums[r][p] = (Lanes){0};
  for (int64_t k = 0; k < n; k++, turned += panels * WIDTH) {
    __builtin_prefetch(later + k * step, 0, 2);
    for (int p = 0; p < panels; p++) {
      v[p] = LOAD(turned + p * WIDTH);
      __builtin_prefetch(turned + (SOON * panels + p) * WIDTH);
    }
    _Pragma("GCC unroll 8") for (int r = 0; r < TALL; r++)
      _Pragma("GCC unroll 3") for (int p = 0; p < panels; p++) sums[r][p] += w[r][k] * v[p];
  }
  for (int r = 0; r < TALL; r++)
    for (int p = 0; p < panels; p++) out[r][p] = sums[r][p];
}

/* `count` rows of `m` times the vectors; added to `out` or put there. */
static void multiply_many(const Matrix *m, int64_t first, int64_t count, const float *turned,
                          int64_t vectors, float *out, int64_t stride, int add, float *room) {
  int64_t n = m->columns, all = panels_of(vectors), end = first + count;
  const float *wide[MANY_ROWS];
  for (int64_t i = 0; i < count; i++) wide[i] = wide_row(m, first + i, room + i * n);
  for (int64_t panel = 0; panel < all; panel += PANELS)
    for (int64_t row = first; row < end; row += TALL) {
      int panels = all - panel < PANELS ? (int)(all - panel) : PANELS;
      int rows = end - row < TALL ? (int)(end - row) : TALL;
      const float *w[TALL], *from = turned + panel * n * WIDTH;
      Lanes sums[TALL][PANELS];
      int64_t step = panel + PANELS < all || m->kind ? 0 : TALL * 4;
      const uint8_t *later = row_of(m, row + MANY_ROWS);
      for (int r = 0; r < TALL; r++) w[r] = wide[row - first + (r < rows ? r : 0)];
      if (panels == 1) tile_many(1, w, from, n, later, step, sums);
      else if (panels == 2) tile_many(2, w, from, n, later, step, sums);
      else tile_many(PANELS, w, from, n, later, step, sums);
      for (int64_t v = panel * WIDTH; v < vectors && v < (panel + panels) * WIDTH; v++)
        for (int r = 0; r < rows; r++) {
          float *to = out + v * stride + row + r;
          float sum = sums[r][v / WIDTH - panel][v % WIDTH];
          *to = sum + (m->bias ? m->bias[row + r] : 0) + (add ? *to : 0);
        }
    }
}
