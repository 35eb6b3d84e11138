//! Signals as something to read, pipes, and the descriptors that a forked copy must not keep.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;
use rustix::process::Signal;

/// What the kernel writes for each signal.
const SIGINFO: usize = 128;

/// Signals that this process does not die of any more but reads from here.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks `signals` in this thread and gives a descriptor that is readable when one came. A
    /// forked child may go on using it: it then tells of the child's own signals.
    ///
    /// # Errors
    /// The system's.
    pub fn watch(signals: &[Signal]) -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` makes the set whole before it is read; all pointers are to live
        // locals or null where the call allows it; the descriptor is fresh, so it is ours to own.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in signals {
                if *signal == Signal::CHILD {
                    // Whoever started us may have had it ignored, which would lose every status.
                    libc::signal(libc::SIGCHLD, libc::SIG_DFL);
                }
                libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
            }
            if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(Self(OwnedFd::from_raw_fd(fd)))
            }
        }
    }

    /// The signals of a terminal and of who ends processes: INT, TERM, HUP, QUIT.
    ///
    /// # Errors
    /// The system's.
    pub fn of_the_end() -> io::Result<Self> {
        Self::watch(&[Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT])
    }

    /// The next signal that came, if one did.
    pub fn next(&self) -> Option<Signal> {
        let mut bytes = [0u8; SIGINFO];
        let length = rustix::io::read(&self.0, &mut bytes).ok()?;
        let number = bytes.get(..length)?.first_chunk::<4>().copied()?;
        Signal::from_named_raw(i32::from_ne_bytes(number))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A pipe whose reading end does not block.
pub(super) fn pipe() -> io::Result<(File, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&read, OFlags::NONBLOCK)?;
    Ok((File::from(read), write))
}

/// For a forked child that never returns to what its parent was doing: closes every descriptor but
/// `kept`, and leads the three standard ones to `/dev/null`, so that nobody waits for the end of a
/// pipe that this process happens to have.
pub(super) fn close_all_but(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let kept: Vec<RawFd> = kept.iter().map(AsRawFd::as_raw_fd).collect();
    let null = File::options().read(true).write(true).open("/dev/null")?;
    for standard in 0..=libc::STDERR_FILENO {
        // SAFETY: no object of this forked copy that owns a standard descriptor is used again.
        if !kept.contains(&standard) && unsafe { libc::dup2(null.as_raw_fd(), standard) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    let open: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number > libc::STDERR_FILENO && *number != null.as_raw_fd())
        .filter(|number| !kept.contains(number))
        .collect();
    for number in open {
        // SAFETY: what owned the number belongs to the parent's work, which this copy never comes
        // back to; the listing's own number is closed already, which is an error we ignore.
        unsafe { libc::close(number) };
    }
    Ok(())
}
