// Prints which wider vectors and further instructions the C library finds, and computes with them where there are any.
#include <immintrin.h>
#include <stdio.h>

static __attribute__((target("avx2"))) void with_avx2(void)
{
    int result[8];
    volatile int start = 1000;
    __m256i sum = _mm256_set1_epi32(start);
    for (int i = 0; i < 10; i++)
        sum = _mm256_add_epi32(_mm256_mullo_epi32(sum, _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8)), _mm256_set1_epi32(i));
    _mm256_storeu_si256((__m256i *)result, sum);
    for (int i = 0; i < 8; i++)
        printf("%x ", result[i]);
    printf("\n");
}

static __attribute__((target("avx512f"))) void with_avx512(void)
{
    volatile double start = 0.5;
    __m512d value = _mm512_set1_pd(start);
    for (int i = 0; i < 8; i++)
        value = _mm512_fmadd_pd(value, value, _mm512_set1_pd(i));
    printf("%a\n", _mm512_reduce_max_pd(value));
}

int main(void)
{
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") != 0, avx512 = __builtin_cpu_supports("avx512f") != 0;
    printf("avx %d, avx2 %d, fma %d, bmi2 %d, avx512f %d, vpclmulqdq %d\n", __builtin_cpu_supports("avx") != 0, avx2,
           __builtin_cpu_supports("fma") != 0, __builtin_cpu_supports("bmi2") != 0, avx512,
           __builtin_cpu_supports("vpclmulqdq") != 0);
    if (avx2)
        with_avx2();
    if (avx512)
        with_avx512();
}
