//! The tools `task_write` and `task_list`.

use serde_json::json;
use stead_agent::port::{Answering, Done};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes};
use stead_core::task::{Owner, TaskChange};

use crate::session::actor::Actor;
use crate::session::message::Work;

impl Actor {
    /// Every task and note.
    pub(in crate::session) fn list_tasks(&self) -> Done {
        let tasks = self.tasks();
        let text = crate::text::tasks(&tasks);
        let structured = serde_json::to_value(&tasks).unwrap_or_default();
        Done { text, structured }
    }
}

/// Writes tasks and notes of `by`, all or none.
pub(super) fn write(
    by: AgentPath,
    changes: Vec<TaskChange>,
    notes: Vec<(Option<String>, String)>,
    answer: Answering<Done>,
    work: &mut Vec<Work>,
) {
    let notes: Result<Vec<_>, String> = notes
        .into_iter()
        .map(|(owner, text)| Ok((owner.map(Owner::try_from).transpose()?, text)))
        .collect();
    let notes = match notes {
        Ok(notes) => notes,
        Err(line) => {
            let refusal = Refusal::new(RefusalKind::InvalidArgument, line);
            return drop(answer.send(Err(refusal)));
        }
    };
    let command = Command::WriteTasks { by: Some(by), changes, notes };
    let then = Box::new(move |_: &mut Actor, outcome: Result<Outcomes, Refusal>| {
        let _ = answer.send(outcome.and_then(told_written));
    });
    work.push(Work::new(command, then));
}

fn told_written(outcome: Outcomes) -> Result<Done, Refusal> {
    let Outcomes::Written { tasks, notes_dropped } = outcome else {
        return Err(Refusal::new(RefusalKind::Failed, format!("tasks came to {outcome:?}")));
    };
    let numbers: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    let mut lines = vec![format!("written: {}", numbers.join(", "))];
    for owner in notes_dropped {
        let owner = String::from(owner);
        lines.push(format!("the note of {owner} was not kept: no task is open"));
    }
    Ok(Done { text: lines.join("\n"), structured: json!({ "tasks": tasks }) })
}
