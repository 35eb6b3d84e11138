//! The few system calls that rustix does not offer or that need `unsafe`.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::process::Pid;

/// Proof that this process has one thread, so that a forked copy of it is a whole process.
pub(crate) struct Alone(());

impl Alone {
    pub(crate) fn prove() -> io::Result<Self> {
        if std::fs::read_dir("/proc/self/task")?.count() == 1 {
            Ok(Self(()))
        } else {
            Err(io::Error::other("the spawner has more than one thread"))
        }
    }
}

pub(crate) enum Forked {
    Child,
    Parent(Pid),
}

pub(crate) fn fork(_proof: &Alone) -> io::Result<Forked> {
    // SAFETY: with one thread no lock is held by a thread that the child lacks, so the child may
    // run any code; libc's own state is put right by libc's `fork`.
    match unsafe { libc::fork() } {
        0 => Ok(Forked::Child),
        number => Pid::from_raw(number)
            .filter(|_| number > 0)
            .map(Forked::Parent)
            .ok_or_else(io::Error::last_os_error),
    }
}

/// Ends a forked child without running what the parent has registered for its own exit.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Blocks SIGCHLD in this process and gives a descriptor that is readable when a child changed.
/// A forked child may go on using it: it then tells of the child's own children.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` makes the set whole before it is read; all pointers are to live locals
    // or null where the call allows it; the descriptor is fresh, so it is ours to own.
    unsafe {
        // Whoever started us may have had SIGCHLD ignored, which would lose every exit status.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Moves standard input to another, close-on-exec descriptor and puts `/dev/null` in its place.
pub(crate) fn take_stdin() -> io::Result<OwnedFd> {
    use std::os::fd::AsFd;
    let moved = io::stdin().as_fd().try_clone_to_owned()?;
    let null = File::open("/dev/null")?;
    // SAFETY: both numbers are open descriptors; nothing in this process owns number 0.
    if unsafe { libc::dup2(null.as_raw_fd(), libc::STDIN_FILENO) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(moved)
}

/// Makes every descriptor above standard error close-on-exec, whoever left it open.
pub(crate) fn close_all_on_exec() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if number > libc::STDERR_FILENO {
            // SAFETY: only a flag of a number that was just listed is changed, and nothing is
            // closed; the number of the listing itself may be gone, which is an error we ignore.
            let fd = unsafe { BorrowedFd::borrow_raw(number) };
            let _ = rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC);
        }
    }
    Ok(())
}

/// Starts `program` as the leader of a new session with the given standard descriptors, default
/// signals and an empty signal mask. An error of the exec itself comes back as this call's error.
pub(crate) fn launch(
    program: &CStr,
    arguments: &[CString],
    environment: &[CString],
    stdio: [BorrowedFd<'_>; 3],
) -> io::Result<Pid> {
    let argv = pointers(arguments);
    let envp = pointers(environment);
    let flags = libc::POSIX_SPAWN_SETSIGMASK
        | libc::POSIX_SPAWN_SETSIGDEF
        | i32::from(libc::POSIX_SPAWN_SETSID);
    let flags = libc::c_short::try_from(flags).map_err(io::Error::other)?;
    let mut actions = MaybeUninit::<libc::posix_spawn_file_actions_t>::uninit();
    let mut attributes = MaybeUninit::<libc::posix_spawnattr_t>::uninit();
    let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
    let mut number: libc::pid_t = 0;
    // SAFETY: each structure is initialised before use and destroyed once; the argument vectors
    // end with a null pointer and their strings outlive the call; libc does not write through the
    // `*mut` pointers of the vectors.
    let outcome = unsafe {
        check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
        check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
        libc::sigemptyset(signals.as_mut_ptr());
        let mut outcome =
            check(libc::posix_spawnattr_setsigmask(attributes.as_mut_ptr(), signals.as_ptr()));
        libc::sigfillset(signals.as_mut_ptr());
        outcome = outcome
            .and_then(|()| {
                check(libc::posix_spawnattr_setsigdefault(
                    attributes.as_mut_ptr(),
                    signals.as_ptr(),
                ))
            })
            .and_then(|()| check(libc::posix_spawnattr_setflags(attributes.as_mut_ptr(), flags)));
        for (target, fd) in (0..).zip(stdio) {
            outcome = outcome.and_then(|()| {
                check(libc::posix_spawn_file_actions_adddup2(
                    actions.as_mut_ptr(),
                    fd.as_raw_fd(),
                    target,
                ))
            });
        }
        outcome = outcome.and_then(|()| {
            check(libc::posix_spawn(
                &raw mut number,
                program.as_ptr(),
                actions.as_ptr(),
                attributes.as_ptr(),
                argv.as_ptr(),
                envp.as_ptr(),
            ))
        });
        libc::posix_spawn_file_actions_destroy(actions.as_mut_ptr());
        libc::posix_spawnattr_destroy(attributes.as_mut_ptr());
        outcome
    };
    outcome?;
    Pid::from_raw(number).ok_or_else(|| io::Error::other("posix_spawn gave no process number"))
}

fn pointers(strings: &[CString]) -> Vec<*mut libc::c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr().cast_mut())
        .chain(std::iter::once(ptr::null_mut()))
        .collect()
}

fn check(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}
