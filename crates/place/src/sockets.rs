//! Ports of this machine: whether they are free, and who listens.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use crate::ports::Block;

/// Somebody who listens on a port of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The port.
    pub port: u16,
    /// The process, by number and name; `None` when it is another user's.
    pub process: Option<(u32, String)>,
}

impl std::fmt::Display for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.process {
            Some((pid, name)) => write!(f, "{name} (process {pid}) on port {}", self.port),
            None => write!(f, "another user's process on port {}", self.port),
        }
    }
}

/// Whether a block may be given away: nobody has any of its ports, not even one that is on its way
/// out. Tried with every address of IPv4 and the loopback of IPv6, without reuse of addresses.
pub(crate) fn is_free(block: Block) -> bool {
    block.ports().all(|port| {
        can_bind((Ipv4Addr::UNSPECIFIED, port).into(), Way::Strict)
            && can_bind((Ipv6Addr::LOCALHOST, port).into(), Way::Strict)
    })
}

/// Whether somebody listens on a port of the block, by whatever address. What only lingers after a
/// server's end does not count.
pub(crate) fn is_listened_on(block: Block) -> bool {
    // One socket that takes both protocols meets the listeners of both.
    let any: IpAddr =
        if has_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    block.ports().any(|port| !can_bind((any, port).into(), Way::BesideTheGone))
}

/// How an address is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Nobody has it, by this protocol.
    Strict,
    /// Nobody listens, by either protocol; what lingers of a server that is gone is let be.
    BesideTheGone,
}

fn has_ipv6() -> bool {
    socket_with(AddressFamily::INET6, SocketType::STREAM, SocketFlags::CLOEXEC, None).is_ok()
}

fn can_bind(address: SocketAddr, way: Way) -> bool {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    // Without the protocol on this machine, nobody else has the port by it either.
    let Ok(socket) = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None) else {
        return true;
    };
    if address.is_ipv6() {
        let _ = sockopt::set_ipv6_v6only(&socket, way == Way::Strict);
    }
    if way == Way::BesideTheGone {
        let _ = sockopt::set_socket_reuseaddr(&socket, true);
    }
    !matches!(bind(&socket, &address), Err(Errno::ADDRINUSE | Errno::ACCESS))
}

/// Who listens on ports of the block.
pub(crate) fn listeners(block: Block) -> Vec<Listener> {
    let mut inodes: BTreeMap<u64, u16> = BTreeMap::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        inodes.extend(text.lines().filter_map(listening).filter(|(_, port)| block.has(*port)));
    }
    if inodes.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<Listener> = Vec::new();
    for (pid, inode) in sockets() {
        if let Some(port) = inodes.get(&inode) {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let process = Some((pid, name.trim().to_owned()));
            found.push(Listener { port: *port, process });
        }
    }
    for port in inodes.into_values() {
        if !found.iter().any(|listener| listener.port == port) {
            found.push(Listener { port, process: None });
        }
    }
    found.sort_by_key(|listener| listener.port);
    found.dedup();
    found
}

/// The inode and port of a listening socket in a line of `/proc/net/tcp`.
fn listening(line: &str) -> Option<(u64, u16)> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (_, port) = fields.next()?.rsplit_once(':')?;
    if fields.nth(1)? != "0A" {
        return None;
    }
    Some((fields.nth(5)?.parse().ok()?, u16::from_str_radix(port, 16).ok()?))
}

/// Every socket that a process of this user has open, by process and inode.
fn sockets() -> impl Iterator<Item = (u32, u64)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).flat_map(|pid| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(move |entry| {
            let target = fs::read_link(entry.path()).ok()?;
            let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some((pid, inode.parse().ok()?))
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::TcpListener;

    use super::*;
    use crate::ports::PortRange;

    #[test]
    fn a_line_of_the_table_is_read() {
        let line = "   0: 0100007F:5208 00000000:0000 0A 00000000:00000000 00:00000000 00000000  \
                    1000        0 4242 1 0000000000000000 100 0 0 10 0";
        assert_eq!(listening(line), Some((4242, 0x5208)));
        assert_eq!(listening(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listening("  sl  local_address rem_address   st tx_queue"), None);
    }

    #[test]
    fn a_listener_is_seen_and_named() {
        for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
            let Ok(server) = TcpListener::bind(address) else { continue };
            let port = server.local_addr().unwrap().port();
            let Some(range) = PortRange::new(port, port.saturating_add(15)) else { continue };
            let block = range.free(0, &BTreeSet::new()).next().unwrap();
            assert!(!is_free(block) && is_listened_on(block), "{address}");
            let found = listeners(block);
            let mine = found.iter().find(|listener| listener.port == port).unwrap();
            assert_eq!(mine.process.as_ref().unwrap().0, std::process::id());
        }
    }
}
