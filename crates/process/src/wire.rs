//! What engine, spawner and supervisors say to each other: one JSON value a packet, with
//! descriptors beside it.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::command::{Command, Order};
use crate::identity::ProcessIdentity;
use crate::pipe::Theirs;
use crate::run::Ended;

/// The longest packet; a longer order travels in a file of memory.
const LONGEST: usize = 48 * 1024;

/// The most descriptors beside one packet: the run's socket, the order's file, the command's ends of
/// two pipes, the held one.
const MOST: usize = 5;

/// What the engine sends to the spawner, and what a supervisor reads of it. Descriptors, in this
/// order: the run's socket; if `inline` is absent the file with the order; the ends that the order's
/// `pipes` tells of, standard input first; if `holds` the one to hold.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) inline: Option<Order>,
    pub(crate) holds: bool,
}

/// What comes back over a run's socket.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    Started(ProcessIdentity),
    Refused(Refusal),
    Ended(Ended),
}

/// Why a run did not start: what failed, and the system's number for it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) part: Part,
    pub(crate) code: i32,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Part {
    /// No file of the program's name is in the path.
    Lookup,
    Program,
    Directory,
    Log,
    Supervisor,
}

impl Refusal {
    pub(crate) fn new(part: Part, error: &io::Error) -> Self {
        Self { part, code: error.raw_os_error().unwrap_or(libc::EIO) }
    }
}

/// What the engine may send over a run's socket.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Wish {
    Stop,
}

/// What the spawner says first.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ready {}

pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

pub(crate) fn send(socket: impl AsFd, value: &impl Serialize) -> io::Result<()> {
    send_bytes(socket.as_fd(), &serde_json::to_vec(value)?, &[])
}

/// Sends `order` with the run's socket, the command's ends of its pipes and the descriptor to hold.
pub(crate) fn send_request(
    socket: BorrowedFd<'_>,
    order: Order,
    run: BorrowedFd<'_>,
    ends: &Theirs,
    held: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let inline = serde_json::to_vec(&Request { inline: Some(order), holds: held.is_some() })?;
    let [stdin, stdout] = [&ends.stdin, &ends.stdout].map(|end| end.as_ref().map(AsFd::as_fd));
    let with =
        |file| -> Vec<_> { [Some(run), file, stdin, stdout, held].into_iter().flatten().collect() };
    if inline.len() <= LONGEST {
        return send_bytes(socket, &inline, &with(None));
    }
    let mut file = File::from(rustix::fs::memfd_create("stead-order", MemfdFlags::CLOEXEC)?);
    file.write_all(&inline)?;
    let outside = serde_json::to_vec(&Request { inline: None, holds: held.is_some() })?;
    send_bytes(socket, &outside, &with(Some(file.as_fd())))
}

/// Passes a packet on as it came.
pub(crate) fn forward(socket: impl AsFd, packet: &Packet) -> io::Result<()> {
    let fds: Vec<_> = packet.fds.iter().map(AsFd::as_fd).collect();
    send_bytes(socket.as_fd(), &packet.bytes, &fds)
}

fn send_bytes(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("too many descriptors for one packet"));
    }
    loop {
        match rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL)
        {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A packet as it came.
pub(crate) struct Packet {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fds: Vec<OwnedFd>,
}

impl Packet {
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> io::Result<T> {
        Ok(serde_json::from_slice(&self.bytes)?)
    }

    /// The command that is asked for, with the descriptor to hold, and its ends of its pipes. The
    /// run's socket has been taken out before.
    pub(crate) fn into_command(self) -> io::Result<(Command, Theirs)> {
        let Request { inline, holds } = self.parse()?;
        let mut fds = self.fds.into_iter();
        let order = match inline {
            Some(order) => order,
            None => read_order(fds.next().ok_or(Errno::MFILE)?)?,
        };
        let wanted = [order.pipes.has_stdin(), order.pipes.has_stdout(), holds];
        // A descriptor that got lost on the way (too many are open here) must not be forgotten, nor
        // another one be taken for it: it may be a lock that somebody relies on.
        if fds.len() != wanted.iter().filter(|wanted| **wanted).count() {
            return Err(Errno::MFILE.into());
        }
        let [stdin, stdout, held] = wanted.map(|wanted| wanted.then(|| fds.next()).flatten());
        Ok((order.into_command(held), Theirs { stdin, stdout }))
    }
}

fn read_order(file: OwnedFd) -> io::Result<Order> {
    let mut file = File::from(file);
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let request: Request = serde_json::from_slice(&bytes)?;
    request.inline.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The next packet, or `None` when the other end is closed. Blocks unless the packet is there.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<Packet>> {
    let mut bytes = vec![0; next_length(&socket)?];
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let length = loop {
        match rustix::net::recvmsg(
            &socket,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut beside,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Ok(message) => break message.bytes,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let fds = beside
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    bytes.truncate(length);
    Ok((length > 0).then_some(Packet { bytes, fds }))
}

/// How long the next packet is; 0 when the other end is closed. To ask costs less than a buffer for
/// the longest would, whose pages a forked process has to copy.
fn next_length(socket: impl AsFd) -> io::Result<usize> {
    loop {
        let mut beginning = [0_u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::TRUNC;
        match rustix::net::recv(&socket, &mut beginning, flags) {
            Ok((_, length)) => return Ok(length),
            // A reset says once that the other end was closed with something of ours unread; what
            // it had sent before is still to be read.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Pipes, Raw};

    fn order(pipes: Pipes, argument: &str) -> Order {
        let text = |text: &str| Raw::Text(text.to_owned());
        Order {
            program: text("true"),
            arguments: vec![text(argument)],
            environment: Vec::new(),
            directory: text("/"),
            time_limit: std::time::Duration::MAX,
            grace: std::time::Duration::ZERO,
            pipes,
            log: text("/dev/null"),
            log_limit: 0,
        }
    }

    /// What arrives of an order, but for the run's socket.
    fn sent(pipes: Pipes, argument: &str, holds: bool) -> Packet {
        let (mine, theirs) = pair().unwrap();
        let (_, ends) = crate::pipe::make(pipes).unwrap();
        let held = holds.then_some(mine.as_fd());
        send_request(mine.as_fd(), order(pipes, argument), mine.as_fd(), &ends, held).unwrap();
        let mut packet = receive(&theirs).unwrap().unwrap();
        packet.fds.remove(0);
        packet
    }

    #[test]
    fn every_descriptor_arrives_as_what_it_is_or_nothing_is_started() {
        let long = "x".repeat(2 * LONGEST);
        for pipes in [Pipes::None, Pipes::Stdin, Pipes::StdinAndStdout] {
            for (argument, holds) in [("a", false), ("a", true), (&long, false), (&long, true)] {
                let (command, ends) = sent(pipes, argument, holds).into_command().unwrap();
                assert_eq!(command.arguments, [argument]);
                assert_eq!(command.held.is_some(), holds);
                assert_eq!(ends.stdin.is_some(), pipes.has_stdin());
                assert_eq!(ends.stdout.is_some(), pipes.has_stdout());
                if let Some(stdin) = &ends.stdin {
                    assert!(rustix::io::read(stdin, &mut [0; 1]).is_ok_and(|read| read == 0));
                }
                // The system drops those at the end when there is no room for all.
                let all = sent(pipes, argument, holds).fds.len();
                for kept in 0..all {
                    let mut packet = sent(pipes, argument, holds);
                    packet.fds.truncate(kept);
                    let error = packet.into_command().unwrap_err();
                    assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{kept} of {all}");
                }
            }
        }
    }
}
