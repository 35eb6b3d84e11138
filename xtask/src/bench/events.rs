//! Durable events a second of one session.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::machine::process_seconds;
use super::row::{Goal, Row};
use super::stats::{middle, number, per_second, ratio, shown};
use super::world::{DONE, World};
use super::{Bench, Outcome, Stage};
use crate::report::Result;
use crate::tool;

pub(super) const BENCH: Bench = Bench {
    name: "events",
    heading: "durable events of one session",
    method: "One session, whose 1, 16 or 64 agents write a note of 340 characters again and again \
             by `task_write`. Each call is two events, the note and the call's answer, and the \
             agent waits until each of them is durable. They begin together. Counted is what the \
             session's log has from when the last agent began to when the first was done, so all of \
             them are at work. \
             The peer writes rows of 400 bytes into SQLite (WAL, `synchronous=FULL`), a \
             transaction each, for 0.7 s: from as many writers as there are agents, each with a \
             connection of its own, and from one writer that nobody disturbs. Five rounds of \
             peers, 1, 16, 64; a round's figures are divided by those of its peers, and the \
             medians are told. Demanded is a multiple of the peer with as many writers, \
             since as many clients wait for it.",
    usual: true,
    run,
};

/// How many agents, and how many notes each of them writes.
const SIZES: [(usize, usize); 3] = [(1, 800), (16, 300), (64, 150)];
/// How many calls stand in one answer of a playbook.
const CALLS: usize = 50;
/// How long the peer writes.
const PEER: Duration = Duration::from_millis(700);

/// What one size reached, and the peer with as many writers, round by round.
#[derive(Default)]
struct Side {
    agents: Vec<f64>,
    writers: Vec<f64>,
    /// Microseconds of the engine's processor time an event.
    costs: Vec<f64>,
}

fn run(stage: &Stage<'_>) -> Result<Outcome> {
    let world = World::new(stage.disk.folder(), &stage.programs.stead())?;
    world.settings("[sessions]\ncapacity = 64\n")?;
    let peer = Peer {
        program: stage.programs.example("one_row"),
        folder: stage.disk.folder().join("peer"),
    };
    let (mut single, mut flushes) = (Vec::new(), Vec::new());
    let mut sides: Vec<Side> = SIZES.iter().map(|_| Side::default()).collect();
    for _ in 0..stage.rounds(5) {
        flushes.push(stage.disk.flushes_per_second(PEER / 2)?);
        let one = peer.rows_per_second(1)?;
        single.push(one);
        for ((agents, notes), side) in SIZES.iter().zip(&mut sides) {
            let notes = if stage.quick { CALLS } else { *notes };
            // The first one starts the engine.
            let before = world.engine().ok().and_then(process_seconds).unwrap_or_default();
            let session = world.play(&playbook(*agents, notes), Duration::from_mins(5))?;
            let after = process_seconds(world.engine()?).ok_or("the engine's time is unknown")?;
            let log = world.ok(&world.work(), ["log", "--session", &session, "--json"])?;
            side.agents.push(rate(&log, *agents)?);
            side.costs.push((after - before) * 1e6 / number(log.lines().count()));
            side.writers.push(if *agents == 1 { one } else { peer.rows_per_second(*agents)? });
        }
    }
    let mut rows = Vec::new();
    let mut notes = vec![format!(
        "The limit is the disk's flush: {} of records of 400 bytes one by one, written over a file \
         that is there already. An append waits for one flush, and the events of agents that wait \
         at the same time share it.",
        per_second(middle("a flush", &flushes)?)
    )];
    for ((agents, _), side) in SIZES.iter().zip(&sides) {
        let what = if *agents == 1 { "1 agent".to_owned() } else { format!("{agents} agents") };
        let row = Row::new(&what, per_second(middle(&what, &side.agents)?));
        let over = ratio(&what, &side.agents, &side.writers)?;
        let peer = writers(*agents);
        rows.push(match agents {
            16 => row.held_to(over, &peer, Goal::AtLeast(5.0)),
            _ => row.ratio(over, &peer),
        });
        let share = ratio(&what, &side.agents, &flushes)?;
        notes.push(format!(
            "{what}: {share:.2} events a flush's time, of at most {agents} that could share it; an \
             event costs the engine {} of processor time.",
            shown(middle(&what, &side.costs)?)
        ));
    }
    for ((agents, _), side) in SIZES.iter().zip(&sides) {
        let peer = writers(*agents);
        rows.push(Row::new(&peer, per_second(middle(&peer, &side.writers)?)));
        if *agents > 1 {
            let alone = ratio(&peer, &side.agents, &single)?;
            notes.push(format!(
                "One SQLite writer that nobody disturbs is faster than several, which wait for one \
                 another: {agents} agents reach {alone:.2} times as much as it."
            ));
        }
    }
    Ok(Outcome { rows, notes })
}

/// The peer of so many agents.
fn writers(agents: usize) -> String {
    match agents {
        1 => "one SQLite writer".to_owned(),
        many => format!("{many} SQLite writers"),
    }
}

/// The peer, in a folder of its own.
struct Peer {
    program: PathBuf,
    folder: PathBuf,
}

impl Peer {
    /// What so many writers reach together.
    fn rows_per_second(&self, writers: usize) -> Result<f64> {
        let mut command = Command::new(&self.program);
        command.arg(&self.folder).arg(PEER.as_millis().to_string()).arg(writers.to_string());
        let printed = tool::printed(command, "one_row")?;
        parse_rows(&printed).ok_or_else(|| format!("one_row printed {printed:?}").into())
    }
}

/// `rows 1234 micros 700000` as rows a second.
fn parse_rows(printed: &str) -> Option<f64> {
    let mut words = printed.split_whitespace();
    let mut next = |name: &str| {
        words.next().filter(|word| *word == name)?;
        words.next()?.parse::<f64>().ok()
    };
    let (rows, micros) = (next("rows")?, next("micros")?);
    (micros > 0.0).then(|| rows / micros * 1e6)
}

/// Events a second of a session while all its agents write, from its log.
fn rate(log: &str, agents: usize) -> Result<f64> {
    let mut times = Vec::new();
    let mut spans: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line)?;
        let at = event.get("at").and_then(Value::as_i64).ok_or("an event without a time")?;
        times.push(at);
        let is_note = event.get("kind").and_then(Value::as_str) == Some("note-set");
        let owner = event.pointer("/body/owner").and_then(Value::as_str);
        if let Some(owner) = owner.filter(|_| is_note) {
            spans.entry(owner.to_owned()).or_insert((at, at)).1 = at;
        }
    }
    if spans.len() != agents {
        return Err(format!("{} of {agents} agents wrote notes", spans.len()).into());
    }
    let began = spans.values().map(|(first, _)| *first).max().ok_or("no agent wrote a note")?;
    let ended = spans.values().map(|(_, last)| *last).min().ok_or("no agent wrote a note")?;
    let count = times.iter().filter(|at| began < **at && **at <= ended).count();
    let seconds = f64::from(i32::try_from(ended - began)?) / 1000.0;
    // Times are whole milliseconds: a short while would say little.
    if seconds < 0.02 {
        return Err(
            format!("all {agents} agents wrote at the same time for {seconds} s only").into()
        );
    }
    Ok(number(count) / seconds)
}

/// A session whose agents write notes.
fn playbook(agents: usize, notes: usize) -> String {
    let note = "x".repeat(340);
    let call = format!(
        "    {{ tool = \"task_write\", with = {{ tasks = [], notes = [{{ note = \"{note}\" }}] }} }},\n"
    );
    let calls = format!("  {{ call = [\n{}  ] }},\n", call.repeat(CALLS));
    let (mut spawns, mut paths) = (String::new(), String::new());
    for number in 1..=agents {
        let _ = writeln!(
            spawns,
            "    {{ tool = \"agent\", with = {{ task_name = \"worker {number}\", message = \
             \"Write notes.\" }} }},"
        );
        let _ = write!(paths, "\"worker-{number}\", ");
    }
    // All begin at once: they open a pipe that has no writer yet, and read on to its end.
    format!(
        "[[agent]]\npath = \"/root\"\n[[agent.turn]]\nstep = [\n  \
         {{ call = {{ tool = \"bash\", with = {{ command = \"rm -f ready-* go; mkfifo go\" }} }} }},\n  \
         {{ call = [\n{spawns}  ] }},\n  \
         {{ call = {{ tool = \"bash\", with = {{ command = \"until [ $(ls ready-* | wc -l) = \
         {agents} ]; do sleep 0.1; done; sleep 1 > go\" }} }} }},\n  \
         {{ wait = [{paths}] }},\n  \
         {{ call = {{ tool = \"bash\", with = {{ command = \"touch {DONE}\" }} }} }},\n  \
         {{ say = \"done\" }},\n]\n\n\
         [[agent]]\npath = \"/root/*\"\n[[agent.turn]]\nstep = [\n  \
         {{ call = {{ tool = \"task_write\", with = {{ tasks = [{{ subject = \"Notes\" }}] }} }} }},\n  \
         {{ call = {{ tool = \"bash\", with = {{ command = \"touch ready-${{STEAD_AGENT##*/}}; \
         cat go\" }} }} }},\n\
         {}  {{ say = \"done\" }},\n]\n",
        calls.repeat(notes / CALLS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_answer_is_read() {
        assert_eq!(parse_rows("rows 1400 micros 700000\n"), Some(2000.0));
        assert_eq!(parse_rows("micros 1 rows 2"), None);
        assert_eq!(parse_rows("rows 1 micros 0"), None);
    }

    #[test]
    fn only_the_time_counts_in_which_all_are_at_work() {
        let line = |at: i64, kind: &str, owner: &str| {
            format!("{{\"at\":{at},\"kind\":\"{kind}\",\"body\":{{\"owner\":\"{owner}\"}}}}\n")
        };
        let mut log = line(0, "note-set", "/root/a") + &line(1000, "note-set", "/root/b");
        for at in 1..=500 {
            log += &line(1000 + at, "answered", "");
        }
        log += &(line(1500, "note-set", "/root/a") + &line(3000, "note-set", "/root/b"));
        // 500 answers and the last note of the agent that ended first, in half a second.
        assert!((rate(&log, 2).unwrap() - 1002.0).abs() < 0.1);
        assert!(rate(&log, 3).is_err());
    }

    #[test]
    fn a_session_writes_as_many_notes_as_it_should() {
        let playbook: toml::Table = playbook(3, 100).parse().unwrap();
        let agents = playbook["agent"].as_array().unwrap();
        assert_eq!(agents[0]["turn"][0]["step"][3]["wait"].as_array().unwrap().len(), 3);
        let steps = agents[1]["turn"][0]["step"].as_array().unwrap();
        let calls = steps.iter().filter_map(|step| step.get("call")?.as_array());
        assert_eq!(calls.map(Vec::len).sum::<usize>(), 100);
    }
}
