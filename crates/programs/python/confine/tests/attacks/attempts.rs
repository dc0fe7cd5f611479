//! What a program might try, and the error that it gets.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use libc::c_long;

use super::scenarios::Surroundings;

type Attempt = (&'static str, &'static str, fn(&Surroundings) -> io::Result<()>);

pub(crate) const ATTEMPTS: &[Attempt] = &[
    // Reading.
    ("read a file outside", "EACCES", |place| read(&place.outside.join("secret"))),
    ("list a folder outside", "EACCES", |place| list(&place.outside)),
    ("list the root", "EACCES", |_| list(Path::new("/"))),
    ("read a file outside from the folder inside", "EACCES", |place| {
        read(&place.inside.join("../outside/secret"))
    }),
    ("read a file outside through a link inside", "EACCES", |place| read(&place.inside.join("link"))),
    ("list a folder outside through a link", "EACCES", |place| list(&place.scratch.join("link"))),
    ("read a file that was open before", "EBADF", |place| {
        let mut byte = 0_u8;
        let descriptor = u64::from(place.open_before.cast_unsigned());
        call(libc::SYS_read, [descriptor, (&raw mut byte).expose_provenance() as u64, 1, 0, 0]).map(drop)
    }),
    ("read the list of users", "EACCES", |_| read(Path::new("/etc/passwd"))),
    ("read its own environment as a file", "EACCES", |_| read(Path::new("/proc/self/environ"))),
    ("write to its own memory as a file", "EACCES", |_| write(Path::new("/proc/self/mem"))),
    ("read the parent's environment", "EACCES", |place| read(&process(place, "environ"))),
    ("read the parent's memory", "EACCES", |place| read(&process(place, "mem"))),
    ("write to the parent's memory", "EACCES", |place| write(&process(place, "mem"))),
    ("list the parent's descriptors", "EACCES", |place| list(&process(place, "fd"))),
    ("open the terminal", "EACCES", |_| write(Path::new("/dev/tty"))),
    ("open shared memory", "EACCES", |_| File::create("/dev/shm/blockyard-confine").map(drop)),
    ("open a file by its handle", "EPERM", |_| plain(libc::SYS_open_by_handle_at)),
    // Writing.
    ("make a file outside", "EACCES", |place| File::create(place.outside.join("new")).map(drop)),
    ("make a file without a name outside", "EACCES", |place| {
        OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(&place.outside).map(drop)
    }),
    ("write to a file outside", "EACCES", |place| write(&place.outside.join("secret"))),
    ("append to a file outside", "EACCES", |place| {
        OpenOptions::new().append(true).open(place.outside.join("secret")).map(drop)
    }),
    ("cut off a file outside", "EACCES", |place| truncate(&place.outside.join("secret"))),
    ("remove a file outside", "EACCES", |place| fs::remove_file(place.outside.join("secret"))),
    ("rename a file outside", "EACCES", |place| {
        fs::rename(place.outside.join("secret"), place.outside.join("other"))
    }),
    ("move a file from outside", "EACCES", |place| {
        fs::rename(place.outside.join("secret"), place.scratch.join("mine"))
    }),
    ("move a file to outside", "EACCES", |place| {
        File::create(place.scratch.join("bait"))?;
        fs::rename(place.scratch.join("bait"), place.outside.join("secret"))
    }),
    ("write through a link to outside", "EACCES", |place| write(&place.scratch.join("link/secret"))),
    // Root could, by one of its capabilities.
    ("write to a file that is protected", "EACCES", |place| write(&place.scratch.join("protected"))),
    ("make a folder outside", "EACCES", |place| fs::create_dir(place.outside.join("folder"))),
    ("remove a folder outside", "EACCES", |place| fs::remove_dir(&place.outside)),
    ("make a file in the readable folder", "EACCES", |place| {
        File::create(place.inside.join("new")).map(drop)
    }),
    ("write to a file in the readable folder", "EACCES", |place| write(&place.inside.join("file"))),
    ("cut off a file in the readable folder", "EACCES", |place| truncate(&place.inside.join("file"))),
    ("cut off a file that is opened for reading", "EACCES", |place| {
        let flags = libc::O_RDONLY | libc::O_TRUNC;
        open(&place.inside.join("file"), flags)
    }),
    ("remove a file in the readable folder", "EACCES", |place| fs::remove_file(place.inside.join("file"))),
    ("give a file outside a second name", "EPERM", |place| {
        fs::hard_link(place.outside.join("secret"), place.scratch.join("second"))
    }),
    ("make a link", "EPERM", |place| symlink(&place.outside, place.scratch.join("made"))),
    ("change permissions outside", "EPERM", |place| {
        fs::set_permissions(place.outside.join("secret"), Permissions::from_mode(0o777))
    }),
    ("change the owner outside", "EPERM", |place| chown(place.outside.join("secret"), Some(1), None)),
    ("change times in the readable folder", "EPERM", |place| {
        File::open(place.inside.join("file"))?.set_modified(SystemTime::UNIX_EPOCH)
    }),
    ("set an attribute outside", "EPERM", |_| plain(libc::SYS_setxattr)),
    ("make a device", "EPERM", |place| make_node(place, libc::S_IFCHR)),
    ("make a pipe with a name", "EPERM", |place| make_node(place, libc::S_IFIFO)),
    ("watch a folder", "EPERM", |_| plain(libc::SYS_inotify_init1)),
    ("change the root", "EPERM", |_| plain(libc::SYS_chroot)),
    // The network.
    ("listen by TCP", "EPERM", |_| TcpListener::bind("127.0.0.1:0").map(drop)),
    ("connect by TCP", "EPERM", |_| TcpStream::connect("127.0.0.1:1").map(drop)),
    ("connect by TCP, version 6", "EPERM", |_| TcpStream::connect("[::1]:1").map(drop)),
    ("open a UDP socket", "EPERM", |_| UdpSocket::bind("127.0.0.1:0").map(drop)),
    ("connect to a socket of this machine", "EPERM", |_| UnixStream::connect("/run/docker.sock").map(drop)),
    ("listen on a socket of this machine", "EPERM", |place| {
        UnixListener::bind(place.scratch.join("s")).map(drop)
    }),
    ("open a pair of sockets", "EPERM", |_| UnixStream::pair().map(drop)),
    ("open a raw socket", "EPERM", |_| socket(libc::AF_INET, libc::SOCK_RAW)),
    ("talk to the kernel's network", "EPERM", |_| socket(libc::AF_NETLINK, libc::SOCK_RAW)),
    ("open a socket of a machine's host", "EPERM", |_| socket(libc::AF_VSOCK, libc::SOCK_STREAM)),
    // Processes.
    ("start a program", "EPERM", |_| Command::new("/bin/true").spawn().map(drop)),
    ("become a program", "EPERM", |_| {
        let nothing = [0_u64];
        let list = (&raw const nothing).expose_provenance() as u64;
        call(libc::SYS_execve, [c"/bin/true".as_ptr().expose_provenance() as u64, list, list, 0, 0]).map(drop)
    }),
    ("become a program by a descriptor", "EPERM", |_| plain(libc::SYS_execveat)),
    ("make a file in memory", "EPERM", |_| {
        call(libc::SYS_memfd_create, [c"file".as_ptr().expose_provenance() as u64, 0, 0, 0, 0]).map(drop)
    }),
    ("fork", "EPERM", |_| clone(libc::SIGCHLD)),
    ("fork without end", "EPERM", |_| {
        (0..100_000).map(|_| clone(libc::SIGCHLD)).find(Result::is_ok).unwrap_or_else(|| clone(libc::SIGCHLD))
    }),
    ("fork with the memory of the parent", "EPERM", |_| {
        clone(libc::SIGCHLD | libc::CLONE_VM | libc::CLONE_VFORK)
    }),
    ("fork into a namespace", "EPERM", |_| clone(libc::SIGCHLD | libc::CLONE_NEWUSER)),
    ("clone by the newer call", "ENOSYS", |_| plain(libc::SYS_clone3)),
    ("leave a namespace", "EPERM", |_| plain(libc::SYS_unshare)),
    ("enter a namespace", "EPERM", |_| plain(libc::SYS_setns)),
    ("leave the session", "EPERM", |_| plain(libc::SYS_setsid)),
    // Other processes.
    ("trace the parent", "EPERM", |place| {
        call(libc::SYS_ptrace, [u64::from(libc::PTRACE_ATTACH), parent(place), 0, 0, 0]).map(drop)
    }),
    ("read the parent's memory by a call", "EPERM", |place| {
        call(libc::SYS_process_vm_readv, [parent(place), 0, 0, 0, 0]).map(drop)
    }),
    ("write the parent's memory by a call", "EPERM", |place| {
        call(libc::SYS_process_vm_writev, [parent(place), 0, 0, 0, 0]).map(drop)
    }),
    ("end the parent", "EPERM", |place| kill(libc::SYS_kill, parent(place), libc::SIGTERM)),
    ("end the parent's thread", "EPERM", |place| {
        let signal = u64::from(libc::SIGTERM.cast_unsigned());
        call(libc::SYS_tgkill, [parent(place), parent(place), signal, 0, 0]).map(drop)
    }),
    ("end the parent by its thread alone", "EPERM", |place| {
        kill(libc::SYS_tkill, parent(place), libc::SIGTERM)
    }),
    ("queue a signal for the parent", "EPERM", |_| plain(libc::SYS_rt_sigqueueinfo)),
    // No signal: if this one worked, it would reach each process of the user.
    ("signal the group", "EPERM", |_| kill(libc::SYS_kill, 0, 0)),
    ("signal all", "EPERM", |_| kill(libc::SYS_kill, u64::from(u32::MAX), 0)),
    ("have the kernel signal the parent", "EPERM", |place| {
        let command = u64::from(libc::F_SETOWN.cast_unsigned());
        call(libc::SYS_fcntl, [0, command, parent(place), 0, 0]).map(drop)
    }),
    ("choose the kernel's signal", "EPERM", |_| call(libc::SYS_fcntl, [0, 10, 9, 0, 0]).map(drop)),
    ("hold the parent", "EPERM", |place| call(libc::SYS_pidfd_open, [parent(place), 0, 0, 0, 0]).map(drop)),
    ("limit the parent", "EPERM", |place| {
        let limit = [0_u64; 2];
        let addr = (&raw const limit).expose_provenance() as u64;
        call(libc::SYS_prlimit64, [parent(place), 0, addr, 0, 0]).map(drop)
    }),
    ("delay others", "EPERM", |_| plain(libc::SYS_setpriority)),
    ("type into the terminal", "EPERM", |_| {
        let letter = b'x';
        call(libc::SYS_ioctl, [0, libc::TIOCSTI, (&raw const letter).expose_provenance() as u64, 0, 0])
            .map(drop)
    }),
    // Its own confinement.
    ("raise a limit", "EPERM", |_| {
        let limit = [u64::MAX; 2];
        let data = u64::from(libc::RLIMIT_DATA);
        call(libc::SYS_prlimit64, [0, data, (&raw const limit).expose_provenance() as u64, 0, 0]).map(drop)
    }),
    ("set a limit", "EPERM", |_| plain(libc::SYS_setrlimit)),
    ("allow dumps", "EPERM", |_| prctl(libc::PR_SET_DUMPABLE, 1)),
    ("live longer than the parent", "EPERM", |_| prctl(libc::PR_SET_PDEATHSIG, 0)),
    ("let others trace it", "EPERM", |_| prctl(libc::PR_SET_PTRACER, u64::MAX)),
    ("take capabilities", "EPERM", |_| plain(libc::SYS_capset)),
    ("become another user", "EPERM", |_| plain(libc::SYS_setuid)),
    ("restrict calls again", "EPERM", |_| plain(libc::SYS_seccomp)),
    ("take shared memory that no limit counts", "EPERM", |_| map(libc::MAP_SHARED | libc::MAP_ANONYMOUS)),
    ("take a stack that no limit counts", "EPERM", |_| {
        map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_GROWSDOWN)
    }),
    ("take memory that outlives it", "EPERM", |_| plain(libc::SYS_shmget)),
    ("make a queue that outlives it", "EPERM", |_| plain(libc::SYS_mq_open)),
    ("lock memory", "EPERM", |_| plain(libc::SYS_mlockall)),
    // The machine.
    ("mount", "EPERM", |_| plain(libc::SYS_mount)),
    ("mount by the newer call", "EPERM", |_| plain(libc::SYS_fsopen)),
    ("unmount", "EPERM", |_| plain(libc::SYS_umount2)),
    ("load a program into the kernel", "EPERM", |_| plain(libc::SYS_bpf)),
    ("count the processor's events", "EPERM", |_| plain(libc::SYS_perf_event_open)),
    ("make calls through a ring", "EPERM", |_| plain(libc::SYS_io_uring_setup)),
    ("add a key", "EPERM", |_| plain(libc::SYS_add_key)),
    ("read keys", "EPERM", |_| plain(libc::SYS_keyctl)),
    ("handle faults of memory", "EPERM", |_| plain(libc::SYS_userfaultfd)),
    ("load a module", "EPERM", |_| plain(libc::SYS_finit_module)),
    ("set the clock", "EPERM", |_| plain(libc::SYS_clock_settime)),
    ("name the machine", "EPERM", |_| call(libc::SYS_sethostname, [0, u64::MAX, 0, 0, 0]).map(drop)),
    ("read the kernel's messages", "EPERM", |_| plain(libc::SYS_syslog)),
    ("make a call that Linux may get", "EPERM", |_| plain(1000)),
    #[cfg(target_arch = "x86_64")]
    ("make a call of the third table", "EPERM", |_| plain(0x4000_0000 | libc::SYS_getpid)),
    #[cfg(target_arch = "x86_64")]
    ("open ports of the processor", "EPERM", |_| plain(libc::SYS_iopl)),
];

/// Makes a system call as a program in another language would.
#[expect(unsafe_code, reason = "the standard library has no function for what these tests try")]
pub(crate) fn call(number: c_long, arguments: [u64; 5]) -> io::Result<c_long> {
    let [first, second, third, fourth, fifth] = arguments;
    // SAFETY: what the calls write to is of the caller's, and lives through the call.
    let answer = unsafe { libc::syscall(number, first, second, third, fourth, fifth, 0_u64) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// A call without arguments, which is refused for its number alone.
fn plain(number: c_long) -> io::Result<()> {
    call(number, [0; 5]).map(drop)
}

fn read(path: &Path) -> io::Result<()> {
    File::open(path).map(drop)
}

fn write(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(path).map(drop)
}

fn list(path: &Path) -> io::Result<()> {
    fs::read_dir(path).map(drop)
}

fn open(path: &Path, flags: i32) -> io::Result<()> {
    let path = std::ffi::CString::new(path.to_str().unwrap())?;
    let here = i64::from(libc::AT_FDCWD).cast_unsigned();
    let flags = u64::from(flags.cast_unsigned());
    call(libc::SYS_openat, [here, path.as_ptr().expose_provenance() as u64, flags, 0, 0]).map(drop)
}

fn truncate(path: &Path) -> io::Result<()> {
    let path = std::ffi::CString::new(path.to_str().unwrap())?;
    call(libc::SYS_truncate, [path.as_ptr().expose_provenance() as u64, 0, 0, 0, 0]).map(drop)
}

fn make_node(place: &Surroundings, kind: libc::mode_t) -> io::Result<()> {
    let path = std::ffi::CString::new(place.scratch.join("node").to_str().unwrap())?;
    let here = i64::from(libc::AT_FDCWD).cast_unsigned();
    // The device of `/dev/zero`.
    let device = libc::makedev(1, 5);
    call(
        libc::SYS_mknodat,
        [here, path.as_ptr().expose_provenance() as u64, u64::from(kind | 0o600), device, 0],
    )
    .map(drop)
}

fn socket(family: i32, kind: i32) -> io::Result<()> {
    let word = |number: i32| u64::from(number.cast_unsigned());
    call(libc::SYS_socket, [word(family), word(kind), 0, 0, 0]).map(drop)
}

/// A process that comes to be in spite of the list ends at once, and is no second tested process.
fn clone(flags: i32) -> io::Result<()> {
    let child = call(libc::SYS_clone, [u64::from(flags.cast_unsigned()), 0, 0, 0, 0])?;
    if child == 0 {
        let _ = plain(libc::SYS_exit);
    }
    Ok(())
}

fn kill(number: c_long, process: u64, signal: i32) -> io::Result<()> {
    call(number, [process, u64::from(signal.cast_unsigned()), 0, 0, 0]).map(drop)
}

fn prctl(option: i32, value: u64) -> io::Result<()> {
    call(libc::SYS_prctl, [u64::from(option.cast_unsigned()), value, 0, 0, 0]).map(drop)
}

fn map(flags: i32) -> io::Result<()> {
    let access = u64::from((libc::PROT_READ | libc::PROT_WRITE).cast_unsigned());
    let nothing = u64::from(u32::MAX);
    call(libc::SYS_mmap, [0, 1 << 20, access, u64::from(flags.cast_unsigned()), nothing]).map(drop)
}

fn parent(place: &Surroundings) -> u64 {
    u64::from(place.parent.cast_unsigned())
}

fn process(place: &Surroundings, file: &str) -> std::path::PathBuf {
    Path::new("/proc").join(place.parent.to_string()).join(file)
}
