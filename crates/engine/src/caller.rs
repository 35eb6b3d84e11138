//! Who is calling (`decisions.md`, *Who is calling*).
//!
//! On an agent's socket every caller is that agent. On the person's socket a process that descends
//! from anything this engine started is never the person, and neither is one whose process cannot
//! be looked at. That is a guard, not a boundary: the boundary comes with the sandbox.

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use stead_core::id::SessionId;
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_process::{ProcessIdentity, ancestors};
use tokio::net::UnixListener;

/// Who stands behind a socket.
#[derive(Debug, Clone)]
pub(crate) enum Behind {
    /// The person, unless the process says otherwise.
    Person,
    /// One agent, always.
    Agent {
        /// Its root session.
        session: SessionId,
        /// Its address.
        path: AgentPath,
    },
}

/// The process at the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pid: Option<u32>,
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        let pid = stream.io().peer_cred().ok().and_then(|c| c.pid());
        Self { pid: pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0) }
    }
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The person.
    Person,
    /// An agent.
    Agent {
        /// Its root session.
        session: SessionId,
        /// Its address.
        path: AgentPath,
    },
    /// Somebody who may look and no more.
    Unknown,
}

impl Caller {
    /// Judges the caller behind a socket.
    pub(crate) fn judge(behind: &Behind, peer: Peer, spawner: &ProcessIdentity) -> Self {
        match (behind, peer.pid) {
            (Behind::Agent { session, path }, _) => {
                Self::Agent { session: session.clone(), path: path.clone() }
            }
            (Behind::Person, Some(pid)) => {
                let above = ancestors(pid);
                // A process that is gone, or whose line cannot be followed, is nobody's.
                if above.is_empty() || above.contains(spawner) {
                    Self::Unknown
                } else {
                    Self::Person
                }
            }
            (Behind::Person, None) => Self::Unknown,
        }
    }

    /// Refuses everybody but the person.
    pub(crate) fn require_person(&self, what: &str) -> Result<(), Refusal> {
        match self {
            Self::Person => Ok(()),
            Self::Agent { path, .. } => {
                Err(Refusal::new(RefusalKind::PersonOnly, format!("{path} may not {what}")))
            }
            Self::Unknown => Err(Refusal::new(
                RefusalKind::PersonOnly,
                format!("a process that an agent started may not {what}"),
            )),
        }
        .map_err(|r| r.hint("only the person may, from a terminal of their own"))
    }

    /// Refuses an agent of another session.
    pub(crate) fn check_session(&self, wanted: &SessionId) -> Result<(), Refusal> {
        match self {
            Self::Agent { session, path } if session != wanted => Err(Refusal::new(
                RefusalKind::NotAllowed,
                format!("{path} belongs to the session {session}, not to {wanted}"),
            )),
            _ => Ok(()),
        }
    }

    /// The agent that calls; none: the person.
    pub(crate) fn sender(&self) -> Result<Option<AgentPath>, Refusal> {
        match self {
            Self::Person => Ok(None),
            Self::Agent { path, .. } => Ok(Some(path.clone())),
            Self::Unknown => self.require_person("send as the person").map(|()| None),
        }
    }
}
