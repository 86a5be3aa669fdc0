// Vector instructions of the base set compute all lanes right: integers, saturated, shuffled, compared, and floats.
#include <emmintrin.h>
#include <stdint.h>
#include <stdio.h>

static void say(const char *what, __m128i value)
{
    uint64_t halves[2];
    _mm_storeu_si128((__m128i *)halves, value);
    printf("%s: %016lx%016lx\n", what, halves[1], halves[0]);
}

int main(void)
{
    volatile int first = 0x12345678;
    __m128i a = _mm_set_epi32(first, -5, 0x7fff8000, 100000), b = _mm_set_epi32(3, first, 0x00ff00ff, -100000);
    __m128d d = _mm_set_pd(1.0 / first, -2.75), e = _mm_set_pd(3, first);
    say("sum", _mm_add_epi32(a, b));
    say("saturated", _mm_adds_epi16(a, b));
    say("packed", _mm_packs_epi32(a, b));
    say("products", _mm_mul_epu32(a, b));
    say("high products", _mm_mulhi_epi16(a, b));
    say("multiplied and added", _mm_madd_epi16(a, b));
    say("differences", _mm_sad_epu8(a, b));
    say("shuffled", _mm_shuffle_epi32(a, 0x1b));
    say("shifted", _mm_srai_epi16(a, 3));
    say("bytes shifted", _mm_slli_si128(a, 5));
    say("greater", _mm_cmpgt_epi32(a, b));
    say("interleaved", _mm_unpacklo_epi8(a, b));
    say("quotients", _mm_castpd_si128(_mm_div_pd(d, e)));
    say("roots", _mm_castpd_si128(_mm_sqrt_pd(e)));
    say("converted", _mm_cvtpd_epi32(_mm_mul_pd(d, e)));
    say("least", _mm_castpd_si128(_mm_min_pd(d, e)));
    printf("signs %x %x\n", _mm_movemask_epi8(a), _mm_movemask_pd(d));
}
