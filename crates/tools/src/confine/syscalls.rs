//! What a confined program may ask of the kernel. Everything that is not named here fails with `EPERM`.
//!
//! Landlock decides about files that are opened, made, renamed and removed, so that may be asked for. What it does not
//! decide about is not on the list: sockets, what changes permissions, owners and times by a path, mounts, namespaces, and
//! whatever looks into other processes.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Fine whatever the arguments are.
const ALWAYS: &[c_long] = &[
    // Files that are open, or that Landlock decides about.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_syncfs,
    libc::SYS_flock,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_copy_file_range,
    libc::SYS_umask,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    libc::SYS_memfd_create,
    // Waiting.
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_signalfd4,
    // What is left of sockets: pairs of its own.
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_mincore,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_membarrier,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect,
    // Processes and threads of its own. `clone` has conditions, and `clone3` is not there by another filter.
    libc::SYS_clone3,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getgroups,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_capget,
    libc::SYS_prctl,
    libc::SYS_pidfd_open,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_getpriority,
    libc::SYS_getcpu,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    libc::SYS_restart_syscall,
    // Signals to itself.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    // Time.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getitimer,
    libc::SYS_setitimer,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_gettime,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_delete,
    // What takes more rights away.
    libc::SYS_seccomp,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
];

/// The older spellings of some of them, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_getdents,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_signalfd,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_getpgrp,
    libc::SYS_alarm,
    libc::SYS_pause,
    libc::SYS_time,
    libc::SYS_arch_prctl,
    libc::SYS_renameat,
    libc::SYS_getrlimit,
    libc::SYS_setrlimit,
    libc::SYS_sync_file_range,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Signals that are sent. Landlock keeps them within, where it can.
const SIGNALS: &[c_long] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// What may be asked of an open file by `ioctl`: how much is there, whether to wait for it, whether it is a terminal, and
/// copies that share their blocks.
const IOCTLS: [u64; 8] = [
    0x541b,      // FIONREAD
    0x5421,      // FIONBIO
    0x5451,      // FIOCLEX
    0x5450,      // FIONCLEX
    0x5401,      // TCGETS
    0x802c_542a, // TCGETS2
    0x5413,      // TIOCGWINSZ
    0x4004_9409, // FICLONE
];

/// Everything that makes a namespace.
const NAMESPACES: u64 = 0x80
    | 0x2_0000
    | 0x200_0000
    | 0x400_0000
    | 0x800_0000
    | 0x1000_0000
    | 0x2000_0000
    | 0x4000_0000;

/// The filters, to be applied one after the other. `signals_are_kept` says that Landlock keeps signals within.
pub(super) fn filters(signals_are_kept: bool) -> Result<Vec<BpfProgram>, String> {
    let failed = |error: seccompiler::BackendError| format!("seccomp: {error}");
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(failed)?;
    let errno = |code: i32| SeccompAction::Errno(code.unsigned_abs());
    let allowed = SeccompFilter::new(
        rules(signals_are_kept).map_err(failed)?,
        errno(libc::EPERM),
        SeccompAction::Allow,
        arch,
    );
    // What they are to do is behind a pointer, where no filter can look. A program that is told that there is no such call
    // takes `clone` and `openat`.
    let absent = SeccompFilter::new(
        Rules::from([
            (libc::SYS_clone3, Vec::new()),
            (libc::SYS_openat2, Vec::new()),
        ]),
        SeccompAction::Allow,
        errno(libc::ENOSYS),
        arch,
    );
    let mut filters = Vec::new();
    for filter in [allowed, absent] {
        filters.push(BpfProgram::try_from(filter.map_err(failed)?).map_err(failed)?);
    }
    if cfg!(target_arch = "x86_64") {
        filters.push(no_x32());
    }
    Ok(filters)
}

fn rules(signals_are_kept: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    for call in ALWAYS.iter().chain(OLDER) {
        rules.insert(*call, Vec::new());
    }
    let when = |conditions: &[(u8, Len, Op, u64)]| {
        let conditions = conditions.iter().map(|(argument, length, op, value)| {
            SeccompCondition::new(*argument, length.clone(), op.clone(), *value)
        });
        SeccompRule::new(conditions.collect::<Result<_, _>>()?)
    };
    let is = |argument, value| (argument, Len::Dword, Op::Eq, value);
    let is_null = |argument| (argument, Len::Qword, Op::Eq, 0);
    rules.insert(
        libc::SYS_clone,
        vec![when(&[(0, Len::Qword, Op::MaskedEq(NAMESPACES), 0)])?],
    );
    // Files are made, but none that run as who owns them. What makes one and says how behind a pointer is told that there
    // is no such call.
    let plain = |argument| (argument, Len::Dword, Op::MaskedEq(0o6000), 0);
    rules.insert(libc::SYS_openat, vec![when(&[plain(3)])?]);
    rules.insert(libc::SYS_mknodat, vec![when(&[plain(2)])?]);
    rules.insert(libc::SYS_openat2, Vec::new());
    #[cfg(target_arch = "x86_64")]
    for (call, mode) in [
        (libc::SYS_open, 2),
        (libc::SYS_creat, 1),
        (libc::SYS_mknod, 1),
    ] {
        rules.insert(call, vec![when(&[plain(mode)])?]);
    }
    // A pair that is connected: nothing can be sent elsewhere by it.
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    let kinds = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET];
    let pairs = kinds.map(|kind| {
        let kind = u64::from(kind.unsigned_abs());
        when(&[is(0, unix), (1, Len::Dword, Op::MaskedEq(0xf), kind)])
    });
    rules.insert(
        libc::SYS_socketpair,
        pairs.into_iter().collect::<Result<_, _>>()?,
    );
    let ioctls = IOCTLS.map(|request| when(&[is(1, request)]));
    rules.insert(
        libc::SYS_ioctl,
        ioctls.into_iter().collect::<Result<_, _>>()?,
    );
    // F_SETOWN and F_SETOWN_EX have the kernel send signals.
    let owners = [8, 15].map(|command| (1, Len::Dword, Op::Ne, command));
    rules.insert(libc::SYS_fcntl, vec![when(&owners)?]);
    // Its own limits, and a look at others'.
    rules.insert(
        libc::SYS_prlimit64,
        vec![when(&[is(0, 0)])?, when(&[is_null(2)])?],
    );
    rules.insert(libc::SYS_setpriority, vec![when(&[is(0, 0), is(1, 0)])?]);
    for call in [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
    ] {
        rules.insert(call, vec![when(&[is(0, 0)])?]);
    }
    // Only asking: some personalities make holes.
    rules.insert(libc::SYS_personality, vec![when(&[is(0, 0xffff_ffff)])?]);
    // Permissions and times of an open file. It may be one of the system's that may only be read, so whoever these could
    // belong to may not; and nobody makes programs that run as somebody else.
    if !rustix::process::geteuid().is_root() {
        rules.insert(
            libc::SYS_fchmod,
            vec![when(&[(1, Len::Dword, Op::MaskedEq(0o7000), 0)])?],
        );
        rules.insert(libc::SYS_utimensat, vec![when(&[is_null(1)])?]);
    }
    for call in SIGNALS {
        if signals_are_kept {
            rules.insert(*call, Vec::new());
        }
    }
    if !signals_are_kept {
        // The process group is its own.
        rules.insert(libc::SYS_kill, vec![when(&[is(0, 0)])?]);
    }
    Ok(rules)
}

/// x32 has the architecture of x86-64 and other numbers.
fn no_x32() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    const KILL_PROCESS: u32 = 0x8000_0000;
    const ALLOW: u32 = 0x7fff_0000;
    let op = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    vec![
        op(LOAD_NUMBER, 0, 0),
        op(JUMP_IF_AT_LEAST, 1, X32),
        op(RETURN, 0, ALLOW),
        op(RETURN, 0, KILL_PROCESS),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_landlock_does_not_decide_about_is_not_allowed() {
        for signals_are_kept in [true, false] {
            let rules = rules(signals_are_kept).unwrap();
            for call in [
                libc::SYS_socket,
                libc::SYS_connect,
                libc::SYS_bind,
                libc::SYS_ptrace,
                libc::SYS_process_vm_readv,
                libc::SYS_pidfd_getfd,
                libc::SYS_bpf,
                libc::SYS_perf_event_open,
                libc::SYS_userfaultfd,
                libc::SYS_keyctl,
                libc::SYS_add_key,
                libc::SYS_request_key,
                libc::SYS_mount,
                libc::SYS_umount2,
                libc::SYS_pivot_root,
                libc::SYS_chroot,
                libc::SYS_unshare,
                libc::SYS_setns,
                libc::SYS_open_by_handle_at,
                libc::SYS_mq_open,
                libc::SYS_shmget,
                libc::SYS_setsid,
                libc::SYS_setpgid,
                libc::SYS_fchmodat,
                libc::SYS_fchownat,
                libc::SYS_setxattr,
                libc::SYS_io_uring_setup,
                libc::SYS_setuid,
                libc::SYS_capset,
                libc::SYS_inotify_add_watch,
            ] {
                assert!(!rules.contains_key(&call), "{call}");
            }
            assert_eq!(rules.contains_key(&libc::SYS_tgkill), signals_are_kept);
        }
        assert!(filters(true).is_ok());
    }
}
