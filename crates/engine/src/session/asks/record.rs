//! What a turn says and what its calls came to: recorded before anything follows from it.

use std::time::Instant;

use stead_agent::Answering;
use stead_core::id::{CallId, TurnId};
use stead_core::path::AgentPath;
use stead_core::session::Command;
use stead_core::usage::Usage;
use stead_store::Body;

use crate::session::actor::Actor;
use crate::session::message::Work;
use crate::timing;

/// Records what the agent said.
pub(super) fn say(
    path: AgentPath,
    turn: TurnId,
    reply: Vec<u8>,
    calls: Vec<CallId>,
    usage: Option<Usage>,
    answer: Answering<()>,
) -> Work {
    let body = Body::new(reply);
    let command = Command::Say { path, turn, body: body.reference(), calls, usage };
    recorded(turn, command, answer).with(body)
}

impl Actor {
    /// Records what a call came to.
    pub(super) fn answer(
        &self,
        path: AgentPath,
        turn: TurnId,
        call: CallId,
        result: Vec<u8>,
        answer: Answering<()>,
    ) -> Work {
        if let Some(live) = self.live.get(&turn) {
            timing::took("call", live.told);
        }
        let body = Body::new(result);
        let command = Command::Answer { path, turn, call, body: body.reference() };
        recorded(turn, command, answer).with(body)
    }
}

/// A command of a turn that answers only that it is durable.
fn recorded(turn: TurnId, command: Command, answer: Answering<()>) -> Work {
    Work::new(
        command,
        Box::new(move |actor: &mut Actor, outcome| {
            if let Some(live) = actor.live.get_mut(&turn) {
                live.told = Instant::now();
            }
            let _ = answer.send(outcome.map(drop));
        }),
    )
}
