//! What faces send.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stead_core::id::{Label, PermissionId, RequestId, SessionId, SlotName};
use stead_core::layout::{AbsoluteDir, Access, Placement};
use stead_core::permission::{Answer, Mode};

/// Who answers permission requests of what a request starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attendance {
    /// They wait: for a client that can answer, or for `stead permit`.
    Detached,
    /// They fail at once, unless a client that can answer is there.
    Headless,
}

/// The environment that a client sends with a request that can start a turn. Only what is on the
/// allow list is kept, in memory only.
pub type ClientEnvironment = BTreeMap<String, String>;

/// One root of a new session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootParams {
    /// The folder, absolute; the engine makes it canonical.
    pub directory: AbsoluteDir,
    /// Its slot; none: derived from its name.
    #[serde(default)]
    pub slot: Option<SlotName>,
    /// What may be done in it.
    pub access: Access,
}

/// What runs the agents of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DriverParams {
    /// A playbook, whole.
    Playbook {
        /// The file's name, for people.
        name: String,
        /// The file's text.
        text: String,
    },
}

/// Starts a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartParams {
    /// The request's id: a repeated one starts nothing.
    pub request: RequestId,
    /// The working roots; the first is the primary.
    pub roots: Vec<RootParams>,
    /// Where agents work.
    pub placement: Placement,
    /// How much is asked.
    pub mode: Mode,
    /// Whether the plan ceiling is on.
    pub plan_ceiling: bool,
    /// A label.
    #[serde(default)]
    pub label: Option<Label>,
    /// What runs its agents.
    pub driver: DriverParams,
    /// The person's message.
    pub message: String,
    /// Who answers permission requests.
    pub attendance: Attendance,
    /// The client's environment.
    pub environment: ClientEnvironment,
}

/// Sends a message, as the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendParams {
    /// The request's id: a repeated one sends nothing.
    pub request: RequestId,
    /// The target.
    pub target: String,
    /// The text.
    pub message: String,
    /// Whether it asks for a turn.
    pub wake: bool,
    /// Who answers permission requests of the turn that it starts.
    pub attendance: Attendance,
    /// The client's environment.
    pub environment: ClientEnvironment,
}

/// Ends one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptParams {
    /// The target.
    pub target: String,
}

/// Answers a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PermitParams {
    /// Which.
    pub id: PermissionId,
    /// How.
    pub answer: Answer,
}

/// Which events to stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsParams {
    /// Those after this position.
    #[serde(default)]
    pub after: u64,
    /// Whether to go on with events as they come.
    #[serde(default)]
    pub follow: bool,
    /// Whether this subscriber can answer permission requests.
    #[serde(default)]
    pub attached: bool,
}

/// Which session: an id, an unambiguous prefix of one, or the newest that has a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindParams {
    /// An id, a prefix of one, or a label.
    #[serde(default)]
    pub name: Option<String>,
    /// The folder whose newest session is meant when no name is given.
    #[serde(default)]
    pub directory: Option<String>,
}

/// A session's id on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionParams {
    /// The id.
    pub session: SessionId,
}
