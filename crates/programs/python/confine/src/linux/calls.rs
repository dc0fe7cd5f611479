//! Which system calls may be made: a list that the kernel compares each call with.

use std::collections::BTreeMap;

use libc::{c_int, c_long};
use rustix::process::getpid;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

#[cfg(target_arch = "x86_64")]
const PROCESSOR: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const PROCESSOR: TargetArch = TargetArch::aarch64;

/// Calls that the C library makes where it knows them, and replaces by older ones where the kernel says that it has
/// none.
const UNKNOWN: &[c_long] = &[libc::SYS_clone3, libc::SYS_openat2, libc::SYS_mseal];

/// What a program may call with any arguments: about itself, its memory, its threads, time, and what Landlock
/// decides about.
const ALLOWED: &[c_long] = &[
    // Files: Landlock says which may be opened.
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
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
    libc::SYS_umask,
    libc::SYS_fadvise64,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    // Waiting.
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_msync,
    // Threads.
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_gettid,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_getcpu,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Signals to itself.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_setitimer,
    libc::SYS_getitimer,
    libc::SYS_restart_syscall,
    // Time and random bytes.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_times,
    libc::SYS_getrandom,
    // Who it is, and where.
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_getpriority,
    libc::SYS_getrlimit,
    libc::SYS_getrusage,
    libc::SYS_capget,
    libc::SYS_uname,
    libc::SYS_sysinfo,
];

/// The older forms of such calls, which ARM's table does not have.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_alarm,
    libc::SYS_time,
    libc::SYS_getpgrp,
];
#[cfg(target_arch = "aarch64")]
const OLDER: &[c_long] = &[];

/// What a program needs to change the folders in which it may write; Landlock says which those are.
const WRITING: &[c_long] = &[
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sendfile,
    libc::SYS_flock,
];
#[cfg(target_arch = "x86_64")]
const OLDER_WRITING: &[c_long] =
    &[libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_unlink, libc::SYS_rename, libc::SYS_renameat];
#[cfg(target_arch = "aarch64")]
const OLDER_WRITING: &[c_long] = &[libc::SYS_renameat];

/// Copies a descriptor, closes it where a program is started, locks a part of a file. Not the commands that
/// name a process which gets a signal when a descriptor is ready: these would send any signal to any process.
const FCNTL: &[c_int] = &[
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_GETLK,
    libc::F_SETLK,
    libc::F_SETLKW,
];

/// Asks whether a descriptor is a terminal, and of what size. Not the command that puts letters into the
/// terminal's input, which the shell would read as commands when the program has ended.
const IOCTL: &[u32] = &[
    0x5401,      // TCGETS
    0x802C_542A, // TCGETS2
    0x5413,      // TIOCGWINSZ
    0x541B,      // FIONREAD
    0x5450,      // FIONCLEX
    0x5451,      // FIOCLEX
];

/// The name of a thread, and of a piece of memory (`PR_SET_VMA`).
const PRCTL: &[u32] = &[libc::PR_SET_NAME.cast_unsigned(), libc::PR_GET_NAME.cast_unsigned(), 0x5356_4D41];

/// What each thread shares with the others of its process.
const THREAD: c_int =
    libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
/// What makes a process or a namespace, or gives a handle of one.
const NOT_OF_THREADS: c_int = libc::CLONE_PIDFD
    | libc::CLONE_PTRACE
    | libc::CLONE_VFORK
    | libc::CLONE_PARENT
    | libc::CLONE_UNTRACED
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// Restricts the calls of this thread and of those that it starts.
pub(super) fn restrict(has_writable: bool) -> Result<(), seccompiler::Error> {
    // Of two errors for a call the kernel takes that of the last filter, and of an error and a permission the error.
    // So `clone3` is allowed by the second filter and unknown by the first.
    for filter in [unknown()?, allowed(has_writable)?] {
        apply_filter(&filter)?;
    }
    Ok(())
}

/// Answers [`UNKNOWN`] as a kernel that lacks them.
fn unknown() -> Result<BpfProgram, BackendError> {
    compile(always(UNKNOWN).collect(), SeccompAction::Allow, error(libc::ENOSYS))
}

/// Answers all calls that are not allowed with an error.
fn allowed(has_writable: bool) -> Result<BpfProgram, BackendError> {
    let mut rules: Rules = always(UNKNOWN).chain(always(ALLOWED)).chain(always(OLDER)).collect();
    if has_writable {
        rules.extend(always(WRITING).chain(always(OLDER_WRITING)));
    }
    rules.extend(conditional()?);
    compile(rules, error(libc::EPERM), SeccompAction::Allow)
}

fn compile(rules: Rules, other: SeccompAction, found: SeccompAction) -> Result<BpfProgram, BackendError> {
    SeccompFilter::new(rules, other, found, PROCESSOR)?.try_into()
}

fn error(number: c_int) -> SeccompAction {
    SeccompAction::Errno(number.cast_unsigned())
}

fn always(calls: &[c_long]) -> impl Iterator<Item = (i64, Vec<SeccompRule>)> {
    calls.iter().map(|call| (*call, Vec::new()))
}

/// The calls that are allowed with some arguments.
fn conditional() -> Result<Rules, BackendError> {
    let this = getpid().as_raw_pid().cast_unsigned();
    let fcntl = FCNTL.iter().map(|command| is(1, command.cast_unsigned()));
    let ioctl = IOCTL.iter().map(|command| is(1, *command));
    let prctl = PRCTL.iter().map(|option| is(0, *option));
    Ok(Rules::from([
        (libc::SYS_fcntl, one_of(fcntl)?),
        (libc::SYS_ioctl, one_of(ioctl)?),
        (libc::SYS_prctl, one_of(prctl)?),
        (libc::SYS_clone, one_of([has_bits(0, THREAD | NOT_OF_THREADS, THREAD)])?),
        (libc::SYS_mmap, private_or_of_a_file()?),
        // Signals to this process: `abort` and `raise`.
        (libc::SYS_kill, one_of([is(0, this)])?),
        (libc::SYS_tgkill, one_of([is(0, this)])?),
        // Its limits can be read: without a process and without a new limit.
        (libc::SYS_prlimit64, vec![SeccompRule::new(vec![is(0, 0)?, is_null(2)?])?]),
    ]))
}

/// Memory that `RLIMIT_DATA` counts, and files. Not shared memory without a file, and not stacks that grow by
/// themselves: both are counted by no limit but that of addresses.
fn private_or_of_a_file() -> Result<Vec<SeccompRule>, BackendError> {
    let checked = libc::MAP_TYPE | libc::MAP_GROWSDOWN;
    one_of([
        has_bits(3, checked, libc::MAP_PRIVATE),
        has_bits(3, checked | libc::MAP_ANONYMOUS, libc::MAP_SHARED),
        has_bits(3, checked | libc::MAP_ANONYMOUS, libc::MAP_SHARED_VALIDATE),
    ])
}

/// Rules of a condition each, of which one must hold.
fn one_of(
    conditions: impl IntoIterator<Item = Result<SeccompCondition, BackendError>>,
) -> Result<Vec<SeccompRule>, BackendError> {
    conditions.into_iter().map(|condition| SeccompRule::new(vec![condition?])).collect()
}

/// The argument at this index, of 32 bits as the kernel reads it, has this value.
fn is(index: u8, value: u32) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, u64::from(value))
}

fn is_null(index: u8) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)
}

/// Of the argument's bits under `mask`, those of `value` are set and no others.
fn has_bits(index: u8, mask: c_int, value: c_int) -> Result<SeccompCondition, BackendError> {
    let mask = u64::from(mask.cast_unsigned());
    let value = u64::from(value.cast_unsigned());
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}
