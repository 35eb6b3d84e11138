//! Compaction: a summary stands for the beginning of a conversation (A10, agents_36, field_ses_08).
//!
//! No event is ever removed. What changes is what the model is shown: the summary, and what stands
//! behind the cut. Mail is safe, since an unread one is in no conversation yet. A cut lies where a
//! turn ended, never inside the running one, so no result is parted from its call.

use crate::event::{BranchEvent, Envelope, Event};
use crate::id::BodyRef;
use crate::refusal::{Refusal, RefusalKind};

/// Where the conversation of an agent may be cut, and where it is cut. Numbers are `seq`s of its
/// stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cuts {
    /// Its last event; 0: there is none.
    last: u64,
    /// The last event of each turn that ended, oldest first, behind the cut.
    ends: Vec<u64>,
    /// The last event that a summary stands for; 0: none does.
    through: u64,
}

impl Cuts {
    pub(crate) fn event(&mut self, seq: u64) {
        self.last = seq;
    }

    pub(crate) fn turn_ended(&mut self) {
        if self.ends.last().copied().unwrap_or(self.through) < self.last {
            self.ends.push(self.last);
        }
    }

    pub(crate) fn cut(&mut self, through: u64) {
        self.through = self.through.max(through);
        self.ends.retain(|end| *end > through);
    }

    /// The last `seq` that a summary stands for; 0: none does.
    pub fn through(&self) -> u64 {
        self.through
    }

    /// The `seq`s that a summary may go through, oldest first: those at which a turn ended.
    pub fn allowed(&self) -> &[u64] {
        &self.ends
    }

    /// Refuses a cut that is not allowed.
    pub(crate) fn check(&self, through: u64) -> Result<(), Refusal> {
        if self.ends.contains(&through) {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalKind::WrongState,
            format!("the conversation cannot be cut behind {through}: no turn ended there"),
        )
        .hint("a summary goes through the end of a turn, before the one that runs"))
    }
}

/// A conversation as the model is shown it: the summary, if there is one, and the events behind
/// its cut. `conversation` holds the live events of one stream, oldest first; events of branches
/// that were left behind must not be among them, so a rewind to before a compaction gives back what
/// it stood for.
pub fn seen(conversation: &[Envelope]) -> (Option<BodyRef>, impl Iterator<Item = &Envelope>) {
    let cut = conversation.iter().rev().find_map(|envelope| match &envelope.event {
        Event::Branch(BranchEvent::Compacted { through, summary, .. }) => {
            Some((*through, *summary))
        }
        _ => None,
    });
    let through = cut.map_or(0, |(through, _)| through);
    let rest = conversation.iter().filter(move |envelope| {
        let mark = matches!(&envelope.event, Event::Branch(BranchEvent::Compacted { .. }));
        envelope.seq > through && !mark
    });
    (cut.map(|(_, summary)| summary), rest)
}
