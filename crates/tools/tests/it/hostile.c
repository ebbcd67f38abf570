/* Tries to get out of a sandbox. Each attempt prints `NAME refused` or `NAME DONE`, and what it got.
   argv: the file outside, the folder outside, the pid outside, a TCP port, a unix socket, an abstract name */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static void told(const char *name, long ok) {
    if (ok) printf("%s DONE\n", name);
    else printf("%s refused (%s)\n", name, strerror(errno));
    fflush(stdout);
}
static int can_read(const char *path) {
    char byte;
    int fd = open(path, O_RDONLY);
    if (fd < 0) return 0;
    int got = read(fd, &byte, 1) > 0;
    close(fd);
    return got;
}
static int can_write(const char *path, int flags) {
    int fd = open(path, flags, 0600);
    if (fd < 0) return 0;
    int put = write(fd, "x", 1) == 1;
    close(fd);
    return put;
}
static int is_setuid(int fd, const char *path) {
    struct stat data = {0};
    if (fd < 0) return 0;
    fstat(fd, &data);
    close(fd);
    unlink(path);
    return (data.st_mode & S_ISUID) != 0;
}
static int connects(int family, const void *address, socklen_t length) {
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0) return 0;
    int ok = connect(fd, address, length) == 0;
    int kept = errno;
    close(fd);
    errno = kept;
    return ok;
}
/* In a child, because the attempt may be answered with death. */
static void in_child(const char *name, int (*attempt)(void)) {
    pid_t child = fork();
    if (child == 0) _exit(attempt() ? 0 : 1);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) { told(name, 0); return; }
    if (WIFSIGNALED(status)) printf("%s refused (killed by %d)\n", name, WTERMSIG(status));
    else { errno = EPERM; told(name, WEXITSTATUS(status) == 0); }
    fflush(stdout);
}
#if defined(__x86_64__)
static int by_int80(void) {
    long pid;
    __asm__ volatile("int $0x80" : "=a"(pid) : "a"(20) : "memory"); /* getpid of i386 */
    return pid == getpid();
}
static int by_x32(void) { return syscall(0x40000000 + 39) == getpid(); }
#else
static int by_int80(void) { return 0; }
static int by_x32(void) { return 0; }
#endif
static char *outside;
static int by_exec_of_memory(void) {
    int fd = memfd_create("m", 0), from = open("/bin/true", O_RDONLY);
    char buffer[65536];
    ssize_t count;
    if (fd < 0 || from < 0) return 0;
    while ((count = read(from, buffer, sizeof buffer)) > 0) if (write(fd, buffer, count) != count) return 0;
    char *const none[] = {"true", NULL};
    fexecve(fd, none, none);
    return 0;
}
static int by_namespace(void) { return unshare(CLONE_NEWUSER) == 0; }
static int by_clone(void) {
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    return child > 0;
}
static int by_setsid(void) { return setsid() > 0; }
static int by_setpgid(void) { return setpgid(0, 0) == 0; }
static int by_chroot(void) { return chroot(".") == 0; }
static int by_mount(void) { return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mount("none", "/mnt", "tmpfs", 0, "") == 0; }
static int by_setuid(void) { return setresuid(65534, 65534, 65534) == 0; }

int main(int argc, char **argv) {
    if (argc < 7) return 2;
    char path[4096];
    outside = argv[1];
    char *folder = argv[2];
    pid_t watched = atoi(argv[3]);
    int port = atoi(argv[4]);

    told("read-passwd", can_read("/etc/passwd"));
    told("read-outside", can_read(outside));
    snprintf(path, sizeof path, "../%s%s", strrchr(folder, '/') + 1, strrchr(outside, '/'));
    told("read-dotdot", can_read(path));
    symlink(outside, "link-out");
    told("read-symlink", can_read("link-out"));
    unlink("link-out");
    told("link-hard", link(outside, "hard") == 0);
    unlink("hard");
    int by_path = open(folder, O_PATH | O_DIRECTORY);
    told("read-openat", by_path >= 0 && openat(by_path, strrchr(outside, '/') + 1, O_RDONLY) >= 0);
    told("list-outside", opendir(folder) != NULL);
    told("list-root", opendir("/") != NULL);
    told("list-home", opendir("/root") != NULL || opendir("/home") != NULL);
    told("list-proc", opendir("/proc") != NULL);
    told("list-tmp", opendir("/tmp") != NULL);
    snprintf(path, sizeof path, "/proc/%d/environ", watched);
    told("read-environ", can_read(path));
    told("write-outside", can_write(outside, O_WRONLY | O_APPEND));
    snprintf(path, sizeof path, "%s/new", folder);
    told("create-outside", can_write(path, O_WRONLY | O_CREAT));
    unlink(path);
    told("truncate-outside", truncate(outside, 3) == 0);
    snprintf(path, sizeof path, "%s.moved", outside);
    told("rename-outside", rename(outside, path) == 0 && rename(path, outside) == 0);
    told("chmod-outside", chmod(outside, 0644) == 0);
    told("chown-outside", chown(outside, getuid(), getgid()) == 0);
    told("utime-outside", utimensat(AT_FDCWD, outside, NULL, 0) == 0);
    told("xattr-outside", setxattr(outside, "user.x", "x", 1, 0) == 0);
    told("fchmod-system", ({ int fd = open("/usr/bin/env", O_RDONLY); struct stat s; fd >= 0 && fstat(fd, &s) == 0 && fchmod(fd, s.st_mode & 07777) == 0; }));
    told("mkdir-tmp", mkdir("/tmp/holdpoint-hostile", 0700) == 0);
    rmdir("/tmp/holdpoint-hostile");
    umask(0);
    told("setuid-open", is_setuid(open("suid", O_WRONLY | O_CREAT, 04755), "suid"));
    struct { unsigned long long flags, mode, resolve; } how = {O_WRONLY | O_CREAT, 04755, 0};
    told("setuid-openat2", is_setuid(syscall(SYS_openat2, AT_FDCWD, "suid", &how, sizeof how), "suid"));
    told("setuid-chmod", ({ int fd = open("suid", O_WRONLY | O_CREAT, 0600); fchmod(fd, 04755); is_setuid(fd, "suid"); }));
    told("device", mknod("device", S_IFCHR | 0600, 0x103) == 0);
    unlink("device");
    told("tcp", ({ struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}}; connects(AF_INET, &a, sizeof a); }));
    told("udp", socket(AF_INET, SOCK_DGRAM, 0) >= 0);
    told("tcp6", socket(AF_INET6, SOCK_STREAM, 0) >= 0);
    told("netlink", socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
    struct sockaddr_un u = {.sun_family = AF_UNIX};
    strncpy(u.sun_path, argv[5], sizeof u.sun_path - 1);
    told("unix", connects(AF_UNIX, &u, sizeof u));
    struct sockaddr_un n = {.sun_family = AF_UNIX};
    strncpy(n.sun_path + 1, argv[6], sizeof n.sun_path - 2);
    told("abstract", connects(AF_UNIX, &n, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(argv[6])));
    int pair[2];
    told("dgram-pair", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    struct io_uring_params ring = {0};
    told("io_uring", syscall(SYS_io_uring_setup, 4, &ring) >= 0);
    told("ptrace", ptrace(PTRACE_SEIZE, watched, 0, 0) == 0);
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)&main, 1};
    pid_t child = fork();
    if (child == 0) { pause(); _exit(0); }
    told("process-vm", process_vm_readv(child, &here, 1, &there, 1, 0) == 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    int pidfd = syscall(SYS_pidfd_open, watched, 0);
    told("pidfd-getfd", pidfd >= 0 && syscall(SYS_pidfd_getfd, pidfd, 0, 0) >= 0);
    told("kill", kill(watched, SIGCONT) == 0);
    told("kill-by-pidfd", pidfd >= 0 && syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0) == 0);
    struct rlimit core = {0, 0};
    told("prlimit", syscall(SYS_prlimit64, watched, RLIMIT_CORE, &core, NULL) == 0);
    in_child("namespace", by_namespace);
    in_child("clone-namespace", by_clone);
    in_child("mount", by_mount);
    in_child("chroot", by_chroot);
    told("keyring", syscall(SYS_keyctl, 0, -3, 0) >= 0);
    told("shm", shmget(IPC_PRIVATE, 4096, 0600) >= 0);
    told("bpf", syscall(SYS_bpf, 0, NULL, 0) >= 0 || errno == EINVAL || errno == EFAULT);
    told("userfaultfd", syscall(SYS_userfaultfd, 1) >= 0);
    told("open-by-handle", syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0) >= 0 || errno == EFAULT);
    told("stray-fd", fcntl(9, F_GETFD) >= 0);
    in_child("setuid", by_setuid);
    in_child("int80", by_int80);
    in_child("x32", by_x32);
    in_child("setsid", by_setsid);
    in_child("setpgid", by_setpgid);

    /* What must work. */
    printf("-- allowed\n");
    in_child("memfd-exec", by_exec_of_memory);
    told("write-inside", can_write("inside", O_WRONLY | O_CREAT | O_TRUNC));
    told("read-inside", can_read("inside"));
    told("rename-inside", rename("inside", "renamed") == 0);
    told("temporary", can_write(strcat(strcpy(path, getenv("TMPDIR")), "/t"), O_WRONLY | O_CREAT));
    told("null", can_write("/dev/null", O_WRONLY));
    told("random", can_read("/dev/urandom"));
    told("stream-pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    told("child", system("exit 0") == 0);
    return 0;
}
