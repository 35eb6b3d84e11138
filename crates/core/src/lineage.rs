//! Where a session comes from, and what going back or going apart leaves behind (A11, B5).

use serde::{Deserialize, Serialize};

use crate::event::Outcome;
use crate::id::{MailId, Position, SessionId, TaskId};
use crate::path::AgentPath;

/// The most entries of each list that is stored or answered; beside it stands how many there were.
pub const MOST_LISTED: usize = 1000;

/// That a session is the fork of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// The session that it was forked from.
    pub session: SessionId,
    /// The position there: a stable one at which no turn of `/root` ran.
    pub position: Position,
    /// What stayed there.
    #[serde(default, skip_serializing_if = "Dropped::is_nothing")]
    pub left: Dropped,
}

/// A delegated task whose agent is gone and whose copies are still the person's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftTask {
    /// Its number, in the session that it was delegated in.
    pub task: TaskId,
    /// Its title.
    pub title: String,
    /// Where its agent was.
    pub owner: AgentPath,
    /// How the last turn of its agent ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Outcome>,
    /// Whether its agent was at it: it is detached and never runs again from here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
}

/// What a fork did not take along, and a rewind dropped. Each list holds the first
/// [`MOST_LISTED`]; the counts are of all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dropped {
    /// The retained agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentPath>,
    /// How many they were.
    #[serde(skip_serializing_if = "is_zero")]
    pub agent_count: u64,
    /// Mail that nobody had heard, and whose it was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mail: Vec<(MailId, AgentPath)>,
    /// How many they were.
    #[serde(skip_serializing_if = "is_zero")]
    pub mail_count: u64,
    /// The plain tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskId>,
    /// How many they were.
    #[serde(skip_serializing_if = "is_zero")]
    pub task_count: u64,
    /// The delegated tasks: they stay listed, with their copies, where they were delegated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delegated: Vec<LeftTask>,
    /// How many they are.
    #[serde(skip_serializing_if = "is_zero")]
    pub delegated_count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Dropped {
    /// Whether there was nothing to drop.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}
