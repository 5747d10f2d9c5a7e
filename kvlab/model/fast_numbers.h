/* Numbers in four formats, and how each is widened to float32 in the processor's registers.
 *
 * Every format gives back the float32 that it was made from, to the last bit (`fast_pack.py`).
 */
#include <stdint.h>
#include <string.h>
#if defined __AVX2__ || defined __AVX512F__
#include <immintrin.h>
#endif

#ifdef __AVX512F__
#define WIDTH 16 /* numbers in a register */
#define COLS 4   /* vectors multiplied at once: ROWS x COLS sums have to fit into registers */
#else
#define WIDTH 8
#define COLS 2
#endif
#define ROWS 4
#define GROUP 32 /* neighbours in a row that share a scale, as in a GGUF file */
#define PARTS (GROUP / WIDTH)
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 4") /* or sums would live in memory, not in registers */

typedef float Lanes __attribute__((vector_size(4 * WIDTH)));
typedef float Loose __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef float Half __attribute__((vector_size(2 * WIDTH)));
typedef float Quarter __attribute__((vector_size(WIDTH)));
typedef int32_t Whole __attribute__((vector_size(4 * WIDTH)));
typedef int8_t Bytes __attribute__((vector_size(WIDTH)));
typedef uint16_t Shorts __attribute__((vector_size(2 * WIDTH)));
#define LOAD(address) (*(const Loose *)(address))

enum { FLOAT32, BFLOAT16, EIGHT_BITS, FOUR_BITS };
static const int64_t GROUP_BYTES[] = {4 * GROUP, 2 * GROUP, 4 + GROUP, 8 + GROUP / 2};

INLINE Lanes widen(Bytes bytes) {
#if defined __AVX512F__
  return (Lanes)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)bytes));
#elif defined __AVX2__
  return (Lanes)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128((int64_t)bytes)));
#else
  return __builtin_convertvector(__builtin_convertvector(bytes, Whole), Lanes);
#endif
}

/* Four bits: scale, lowest, 16 bytes; number j is in the low half of byte j, j + 16 in the high.
 * Each number is scale x q + lowest, rounded once, as the float32 that it was made from. */
INLINE void widen_four_bits(const uint8_t *from, Lanes to[PARTS]) {
  float scale, lowest;
  memcpy(&scale, from, 4);
  memcpy(&lowest, from + 4, 4);
#ifdef __AVX512F__ /* the 16 values fit into one register: look them up */
  const Lanes count = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  __m512 values = (__m512)(scale * count + lowest);
  __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(from + 8)));
  to[0] = (Lanes)_mm512_permutexvar_ps(bytes, values);
  to[1] = (Lanes)_mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), values);
#else
  for (int p = 0; p < PARTS / 2; p++) {
    Bytes bytes;
    memcpy(&bytes, from + 8 + WIDTH * p, WIDTH);
    to[p] = scale * widen(bytes & 15) + lowest;
    to[p + PARTS / 2] = scale * widen((bytes >> 4) & 15) + lowest;
  }
#endif
}

/* Widen one group. Eight bits: scale, then 32 signed bytes. */
INLINE void widen_group(int kind, const uint8_t *from, Lanes to[PARTS]) {
  float scale;
  memcpy(&scale, from, 4);
  if (kind == FOUR_BITS) widen_four_bits(from, to);
  for (int p = 0; p < PARTS; p++) {
    if (kind == FLOAT32) to[p] = LOAD(from + 4 * WIDTH * p);
    if (kind == BFLOAT16) { /* the upper half of a float32 */
      Shorts halves;
      memcpy(&halves, from + 2 * WIDTH * p, 2 * WIDTH);
      to[p] = (Lanes)(__builtin_convertvector(halves, Whole) << 16);
    }
    if (kind == EIGHT_BITS) {
      Bytes bytes;
      memcpy(&bytes, from + 4 + WIDTH * p, WIDTH);
      to[p] = scale * widen(bytes);
    }
  }
}

INLINE float total(Lanes lanes) { /* fold the register in the middle until four are left */
  Half half[2];
  memcpy(half, &lanes, sizeof lanes);
  half[0] += half[1];
#if WIDTH == 16
  Quarter quarter[2];
  memcpy(quarter, half, sizeof quarter);
  Quarter four = quarter[0] + quarter[1];
#else
  Half four = half[0];
#endif
  return (four[0] + four[2]) + (four[1] + four[3]);
}

INLINE Lanes choose(Whole yes, Lanes a, Lanes b) {
  return (Lanes)((yes & (Whole)a) | (~yes & (Whole)b));
}

INLINE Lanes all_of(float x) { return x - (Lanes){0}; }

/* exp for x <= 0, as a power of two times a polynomial (Cephes); 0 from -88 on. */
INLINE Lanes exp_below_zero(Lanes x) {
  x = choose(x < -88, all_of(-88), x);
  Lanes n = (x * 1.44269504f + 12582912.0f) - 12582912.0f; /* the nearest whole number */
  Lanes r = x - n * 0.693359375f + n * 2.12194440e-4f, p = all_of(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  Lanes power = (Lanes)((__builtin_convertvector(n, Whole) + 127) << 23);
  return (p * r * r + r + 1) * power;
}

/* x / (1 + exp(-x)), with no exp of a large number. */
INLINE Lanes silu(Lanes x) {
  Lanes small = exp_below_zero(choose(x < 0, x, -x));
  return x * choose(x < 0, small, all_of(1)) / (1 + small);
}

static float dot(const float *a, const float *b, int64_t n) {
  Lanes sums = {0};
  int64_t i = 0;
  for (; i + WIDTH <= n; i += WIDTH) sums += LOAD(a + i) * LOAD(b + i);
  float sum = total(sums);
  for (; i < n; i++) sum += a[i] * b[i];
  return sum;
}

