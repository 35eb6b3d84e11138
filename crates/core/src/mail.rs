//! Mail: durable records to one agent, first in, first out (A10).

use serde::{Deserialize, Serialize};

use crate::event::{MailKind, Sender};
use crate::id::{BodyRef, MailId};
use crate::path::AgentPath;

/// The most characters of a RESULT that stand inline in a conversation.
pub const INLINE_RESULT: usize = 32_768;
/// The longest text of one mail, assignment or result that is taken, in bytes.
pub const LONGEST_BODY: usize = 8 * 1024 * 1024;

/// One unread mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Its id.
    pub id: MailId,
    /// What sort of mail.
    pub kind: MailKind,
    /// Who sent it.
    pub from: Sender,
    /// The text.
    pub body: BodyRef,
    /// Whether it asks for a turn.
    pub wake: bool,
}

/// What became of a message when it was sent. *Stored* is never called *delivered*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The recipient's address.
    pub to: AgentPath,
    /// The mail's id.
    pub mail: MailId,
    /// What happened.
    pub state: ReceiptState,
    /// Who will get the RESULT of the turn that hears it; none for `/root` and for stored mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_to: Option<AgentPath>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptState {
    /// It waits for the recipient's next turn; nothing was started.
    Stored,
    /// The running turn hears it at its next boundary.
    QueuedForRunningTurn,
    /// A turn was started that hears it.
    TurnStarted,
}
