//! The spawn of an agent, in units of one durable append.

use std::fmt::Write as _;
use std::time::Duration;

use super::row::{Goal, Row};
use super::stats::{middle, ratio, shown};
use super::timing::{FILTER, Log};
use super::world::{DONE, World};
use super::{Bench, Outcome, Stage};
use crate::report::Result;

pub(super) const BENCH: Bench = Bench {
    name: "spawn",
    heading: "the spawn of an agent",
    method: "A playbook's `/root` spawns 40 agents, each after the one before has settled, in each \
             of 12 sessions. The engine logs how long each spawn took, from the request to the \
             answer, and how long each append took, from when it was handed to the store to when \
             it was durable. A session's median spawn is divided by its median append; the median \
             of that is told.",
    usual: true,
    run,
};

/// How many agents a session spawns.
const AGENTS: usize = 40;

fn run(stage: &Stage<'_>) -> Result<Outcome> {
    let mut world = World::new(stage.disk.folder(), &stage.programs.stead())?;
    world.set("STEAD_LOG", FILTER);
    let mut log = Log::new(world.log());
    let (mut spawns, mut appends) = (Vec::new(), Vec::new());
    for _ in 0..stage.rounds(12) {
        world.play(&playbook(AGENTS), Duration::from_mins(2))?;
        let times = log.next(|seen| seen.spawns.len() >= AGENTS)?;
        spawns.push(middle("a spawn", &times.spawns)?);
        appends.push(middle("an append", &times.appends)?);
    }
    let spawn = Row::new("spawn of an agent", shown(middle("a spawn", &spawns)?));
    let rows = vec![
        spawn.held_to(ratio("a spawn", &spawns, &appends)?, "an append", Goal::AtMost(3.0)),
        Row::new("one durable append", shown(middle("an append", &appends)?)),
    ];
    let limit = "The limit is two appends, one after the other: the reservation is durable before \
                 the agent's directory is looked at, and the publication before the answer."
        .to_owned();
    Ok(Outcome { rows, notes: vec![limit] })
}

/// `/root` spawns agents one by one, and each only says that it is there.
fn playbook(agents: usize) -> String {
    let mut steps = String::new();
    for number in 1..=agents {
        let _ = writeln!(
            steps,
            "  {{ call = {{ tool = \"agent\", as = \"a{number}\", with = {{ task_name = \
             \"worker {number}\", message = \"Say that you are there.\" }} }} }},\n  \
             {{ wait = [\"{{{{a{number}}}}}\"] }},"
        );
    }
    format!(
        "[[agent]]\npath = \"/root\"\n[[agent.turn]]\nstep = [\n{steps}  \
         {{ call = {{ tool = \"bash\", with = {{ command = \"touch {DONE}\" }} }} }},\n  \
         {{ say = \"done\" }},\n]\n\n\
         [[agent]]\npath = \"/root/*\"\n[[agent.turn]]\nstep = [{{ say = \"I am there.\" }}]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_is_waited_for() {
        let playbook: toml::Table = playbook(2).parse().unwrap();
        let root = &playbook["agent"][0]["turn"][0]["step"];
        assert_eq!(root.as_array().unwrap().len(), 2 * 2 + 2);
        assert_eq!(root[3]["wait"][0].as_str(), Some("{{a2}}"));
    }
}
