//! Messages and interrupts: what one agent, or the person, may do to another (A6, A7).

use super::budget;
use super::command::{Decision, Outcomes};
use super::decide::control;
use super::spawn::{beginning, check_room, check_text, own_task};
use super::state::State;
use crate::event::{BranchEvent, MailKind, Sender};
use crate::id::{BodyRef, MailId, Position, TurnId};
use crate::mail::{Receipt, ReceiptState};
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};
use crate::task::{Status, Task};

pub(super) fn send(
    state: &State,
    from: Option<AgentPath>,
    target: &str,
    body: BodyRef,
    wake: bool,
) -> Result<Decision, Refusal> {
    let roster = &state.branch.roster;
    // A caller that is not registered never acts as somebody else (A7).
    let caller = from.as_ref().map(|path| roster.find(path)).transpose()?;
    check_text("a message", body)?;
    let root = AgentPath::root();
    let agent = roster.resolve(caller.map_or(&root, |agent| &agent.path), target)?;
    let to = &agent.path;
    if from.as_ref() == Some(to) {
        return Err(Refusal::new(RefusalKind::NotAllowed, "an agent does not mail itself")
            .hint("list_agents names the others"));
    }
    // A person's words to /root always continue it; an agent's never wake it.
    let wake = wake || (from.is_none() && to.is_root());
    if wake && to.is_root() && from.is_some() {
        return Err(Refusal::new(
            RefusalKind::NotAllowed,
            "an agent may mail /root, never wake it",
        )
        .hint("send it without `wake`"));
    }
    let starts = wake && agent.turn().is_none();
    if starts && !to.is_root() {
        check_room(state)?;
    }
    if starts {
        budget::check_turn(state, agent)?;
    }
    let (kind, sender) = match from {
        Some(path) => (MailKind::Mail, Sender::Agent(path)),
        None => (MailKind::User, Sender::Person),
    };
    let mut events =
        vec![control(BranchEvent::MailStored { kind, from: sender, to: to.clone(), body, wake })];
    if starts {
        // A delegated task's status follows its agent, which is at it again.
        let own = own_task(state, agent).and_then(|own| state.branch.tasks.tasks.get(&own.task));
        if let Some(task) = own.filter(|task| task.status == Status::Completed) {
            let task = Task { status: Status::InProgress, ..task.clone() };
            let tasks = vec![task];
            events.push(control(BranchEvent::TasksWritten { by: Sender::Stead, tasks }));
        }
        let before = Position::try_from(events.len()).unwrap_or(Position::MAX);
        let turn = TurnId(state.tip.saturating_add(before).saturating_add(1));
        events.extend(beginning(to, &agent.id, turn, None, &agent.notes));
    }
    let receipt = Receipt {
        to: to.clone(),
        mail: MailId(state.tip + 1),
        state: match (wake, starts) {
            (_, true) => ReceiptState::TurnStarted,
            (true, false) => ReceiptState::QueuedForRunningTurn,
            (false, false) => ReceiptState::Stored,
        },
        result_to: if wake { to.parent() } else { None },
    };
    Ok(Decision { events, answer: Outcomes::Sent(receipt) })
}

/// Judges an interrupt and names the agent and its running turn; none: it is idle already, which
/// is a success (A6). `caller` is none for the person, who may interrupt `/root` too.
pub fn interrupt(
    state: &State,
    caller: Option<&AgentPath>,
    target: &str,
) -> Result<(AgentPath, Option<TurnId>), Refusal> {
    let roster = &state.branch.roster;
    if let Some(caller) = caller {
        roster.find(caller)?;
    }
    let root = AgentPath::root();
    let agent = roster.resolve(caller.unwrap_or(&root), target)?;
    match caller {
        Some(_) if agent.path.is_root() => {
            Err(Refusal::new(RefusalKind::NotAllowed, "/root is interrupted by the person only"))
        }
        Some(caller) if *caller == agent.path => {
            Err(Refusal::new(RefusalKind::NotAllowed, "an agent does not interrupt itself")
                .hint("end the turn by answering without a call"))
        }
        _ => Ok((agent.path.clone(), agent.turn())),
    }
}
