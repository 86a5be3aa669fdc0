// The C library's asynchronous reads and writes, done by threads of its own, end and give the right counts.
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    static char blocks[8][1000], back[8][1000];
    struct aiocb requests[8] = { 0 }, *list[8];
    int wrong = 0, file = open("asynchronous", O_CREAT | O_RDWR, 0644);
    alarm(60);
    for (int reads = 0; reads < 2; reads++) {
        for (int i = 0; i < 8; i++) {
            memset(blocks[i], 'a' + i, 1000);
            requests[i] = (struct aiocb){ .aio_fildes = file, .aio_buf = reads ? back[i] : blocks[i], .aio_nbytes = 1000,
                                          .aio_offset = i * 1000, .aio_lio_opcode = reads ? LIO_READ : LIO_WRITE };
            list[i] = &requests[i];
        }
        wrong += lio_listio(LIO_WAIT, list, 8, NULL) != 0;
        for (int i = 0; i < 8; i++)
            wrong += aio_error(list[i]) != 0 || aio_return(list[i]) != 1000;
    }
    printf("wrong %d, same: %d\n", wrong, !memcmp(blocks, back, sizeof blocks));
    requests[0].aio_fildes = 800;
    requests[0].aio_lio_opcode = LIO_READ;
    aio_read(&requests[0]);
    while (aio_error(&requests[0]) == EINPROGRESS)
        usleep(500);
    printf("bad descriptor: %s\n", strerror(aio_error(&requests[0])));
}
