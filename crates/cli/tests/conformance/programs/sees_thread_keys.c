// Counts the keys for thread-specific values that the program can get (a helper in the process may hold some).
#include <pthread.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    pthread_key_t key;
    int count = 0, error;
    while (!(error = pthread_key_create(&key, 0)))
        count++;
    printf("keys %d, then %s\n", count, strerror(error));
}
