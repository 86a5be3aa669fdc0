// Root without capabilities may not do what they are for, and the bounding set shrinks for good.
// needs: root
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2] = { 0 }, none[2] = { 0 };
    close(open("mine", O_CREAT | O_WRONLY, 0000));
    printf("chown before: %d\n", chown("mine", 1234, 1234));
    printf("bounding: %d, ", prctl(PR_CAPBSET_READ, CAP_SYS_BOOT));
    printf("dropped: %d, ", prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT));
    printf("after: %d\n", prctl(PR_CAPBSET_READ, CAP_SYS_BOOT));
    syscall(SYS_capget, &head, data);
    printf("has CAP_CHOWN: %d, ", data[0].effective >> CAP_CHOWN & 1);
    printf("set none: %ld, ", syscall(SYS_capset, &head, none));
    syscall(SYS_capget, &head, data);
    printf("has CAP_CHOWN: %d\n", data[0].effective >> CAP_CHOWN & 1);
    printf("chown: %s\n", chown("mine", 0, 0) ? strerror(errno) : "done");
    printf("open of a file without rights: %s\n", open("mine", O_RDONLY) < 0 ? strerror(errno) : "done");
    printf("chroot: %s\n", chroot(".") ? strerror(errno) : "done");
    printf("setuid: %s\n", setresuid(7, 7, 7) ? strerror(errno) : "done");
    usleep(10000);
}
