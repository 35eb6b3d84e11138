//! The seam between a turn and its session: requests that leave the turn as values.
//!
//! Whatever touches the session goes through here, so that one handler in the engine serves the
//! loop, the protocol faces and the program alike. Every answer is given only after what it says
//! is durable.

mod ask;
mod entry;
mod tool;

use stead_core::id::TurnId;
use stead_core::refusal::{Refusal, RefusalKind};
use tokio::sync::{mpsc, oneshot};

pub use self::ask::{Answering, Ask};
pub use self::entry::Entry;
pub use self::tool::{Configuration, Done, Proposal, Route, SessionTool, Source, Spawn};

/// A request on its way to the session.
#[derive(Debug)]
pub struct Asked {
    /// The turn that asks. A turn that has ended is refused.
    pub turn: TurnId,
    /// What.
    pub ask: Ask,
}

/// A turn's end of the channel to its session.
#[derive(Debug, Clone)]
pub struct Port {
    turn: TurnId,
    sender: mpsc::Sender<Asked>,
}

impl Port {
    /// The port of `turn` over this channel.
    pub fn new(turn: TurnId, sender: mpsc::Sender<Asked>) -> Self {
        Self { turn, sender }
    }

    /// Asks what `ask` makes of the way back, and waits for the answer.
    ///
    /// # Errors
    /// The session's refusal, or that it is being closed.
    pub async fn ask<T>(&self, ask: impl FnOnce(Answering<T>) -> Ask) -> Result<T, Refusal> {
        let (answer, answered) = oneshot::channel();
        let gone = || Refusal::new(RefusalKind::Unavailable, "the session is being closed");
        let asked = Asked { turn: self.turn, ask: ask(answer) };
        self.sender.send(asked).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}
