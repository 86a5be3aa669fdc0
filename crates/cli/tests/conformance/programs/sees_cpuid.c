// The processor tells its maker and features as /proc/cpuinfo does.
#include <cpuid.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    unsigned a, b, c, d;
    char vendor[13] = "", line[8192], listed[13] = "", flags[8192] = "";
    __get_cpuid(0, &a, &b, &c, &d);
    memcpy(vendor, &b, 4);
    memcpy(vendor + 4, &d, 4);
    memcpy(vendor + 8, &c, 4);
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (fgets(line, sizeof line, file)) {
        sscanf(line, "vendor_id : %12s", listed);
        if (!strncmp(line, "flags", 5))
            strcpy(flags, line);
    }
    printf("maker %s, as listed: %d\n", vendor, !strcmp(vendor, listed));
    __get_cpuid(1, &a, &b, &c, &d);
    const char *names[] = { " sse4_2 ", " popcnt ", " aes ", " avx ", " fma ", " rdrand ", " movbe ", " f16c ",
                            " hypervisor " };
    int bits[] = { 20, 23, 25, 28, 12, 30, 22, 29, 31 };
    for (int i = 0; i < 9; i++)
        printf("%s: %d, as listed: %d\n", names[i], c >> bits[i] & 1, (c >> bits[i] & 1) == (strstr(flags, names[i]) != 0));
    __cpuid_count(7, 0, a, b, c, d);
    printf("avx2: %d, avx512f: %d, rtm: %d, sha: %d\n", b >> 5 & 1, b >> 16 & 1, b >> 11 & 1, b >> 29 & 1);
}
