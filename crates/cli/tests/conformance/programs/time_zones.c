// Times are broken down and put together by the zone that a variable names, and printed in the C locale.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(void)
{
    const char *zones[] = { "UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT,M3.2.0,M11.1.0", "IST-5:30" };
    time_t times[] = { 0, 1000000000, 1720000000, 4102444800 };
    for (int i = 0; i < 4; i++) {
        setenv("TZ", zones[i], 1);
        tzset();
        for (int j = 0; j < 4; j++) {
            char text[64];
            struct tm *parts = localtime(&times[j]);
            strftime(text, sizeof text, "%a %d %b %Y %H:%M:%S %Z %z %j", parts);
            printf("%s, back: %d\n", text, mktime(parts) == times[j]);
        }
    }
}
