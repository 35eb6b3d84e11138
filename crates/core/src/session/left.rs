//! What a rewind drops, and what a fork leaves with its source (A11, agents_71).

use super::state::State;
use crate::lineage::{Dropped, LeftTask, MOST_LISTED};
use crate::roster::Standing;

fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap_or(u64::MAX)
}

/// Everything of the branch that a rewind or a fork does not take along: agents, unread mail and
/// plain tasks. Delegated tasks stay where they were delegated, with their outcomes and copies;
/// one whose agent was at work is detached.
pub(super) fn dropped(state: &State) -> Dropped {
    let roster = &state.branch.roster;
    let retained = || roster.all().filter(|agent| !agent.path.is_root());
    let mail = || {
        roster.all().flat_map(|agent| agent.unread.iter().map(|mail| (mail.id, agent.path.clone())))
    };
    let delegated = || state.world.delegated.values().filter(|own| !own.owner.is_root());
    let plain = || {
        let tasks = state.branch.tasks.tasks.keys();
        tasks.filter(|id| !state.world.delegated.contains_key(id)).copied()
    };
    let left = delegated().take(MOST_LISTED).map(|own| {
        let agent = roster.at(&own.owner).filter(|agent| agent.task == Some(own.task));
        LeftTask {
            task: own.task,
            title: own.title.clone(),
            owner: own.owner.clone(),
            settled: own.settled,
            detached: agent.map_or(own.settled.is_none(), |a| a.standing != Standing::Idle),
        }
    });
    Dropped {
        agents: retained().map(|agent| agent.path.clone()).take(MOST_LISTED).collect(),
        agent_count: count(retained().count()),
        mail: mail().take(MOST_LISTED).collect(),
        mail_count: count(mail().count()),
        tasks: plain().take(MOST_LISTED).collect(),
        task_count: count(plain().count()),
        delegated: left.collect(),
        delegated_count: count(delegated().count()),
    }
}
