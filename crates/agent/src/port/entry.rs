//! The entries of a conversation.

use serde::{Deserialize, Serialize};
use stead_core::event::{CallFate, MailKind, Sender};
use stead_core::id::{CallId, TurnId};
use stead_model::{Reply, ToolResult};

/// One entry of an agent's conversation, with its bodies read. What a new agent is given of its
/// parent's conversation is stored as a list of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// A summary stands for what was heard and said before; the first entry, if there is one.
    Summary {
        /// The summary.
        text: String,
        /// How many turns it stands for.
        turns: u32,
        /// The calls in them: their ids are used.
        calls: Vec<CallId>,
        /// The tasks and agents as they are now, which no summary may forget.
        standing: String,
    },
    /// The agent heard something.
    Heard {
        /// In which turn.
        turn: TurnId,
        /// From whom.
        from: Sender,
        /// What sort of mail.
        sort: MailKind,
        /// The text.
        text: String,
    },
    /// The agent said something.
    Said {
        /// In which turn.
        turn: TurnId,
        /// What.
        reply: Reply,
    },
    /// A call has its result.
    Answered {
        /// In which turn.
        turn: TurnId,
        /// The result.
        result: ToolResult,
    },
    /// A call will never have one.
    Unanswered {
        /// In which turn.
        turn: TurnId,
        /// Which call.
        call: CallId,
        /// What is known of it.
        fate: CallFate,
    },
}

impl Entry {
    /// The turn that it belongs to; none: a summary of several.
    pub fn turn(&self) -> Option<TurnId> {
        match self {
            Self::Summary { .. } => None,
            Self::Heard { turn, .. }
            | Self::Said { turn, .. }
            | Self::Answered { turn, .. }
            | Self::Unanswered { turn, .. } => Some(*turn),
        }
    }
}
