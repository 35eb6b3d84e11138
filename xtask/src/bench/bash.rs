//! A `bash` call inside the engine, against the shell by itself.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::row::{Goal, Row};
use super::start::{plain, process};
use super::stats::{middle, ratio, shown};
use super::timing::{FILTER, Log};
use super::world::{DONE, World};
use super::{Bench, Outcome, Stage};
use crate::report::Result;

pub(super) const BENCH: Bench = Bench {
    name: "bash",
    heading: "a `bash` call",
    method: "An agent calls `bash` with `true` 50 times in each of 12 sessions. The engine logs how \
             long each call took, from when the `Call` was durable to when its result arrived, \
             and how long each append took, which is told apart. After each session this program \
             starts `sh -c true`, `bash -c true` and `true` 50 times each by `posix_spawn` and \
             waits for their ends. Then the same with an engine that has touched 1 GiB. A round's \
             medians are divided by each other; the median of that is told.",
    usual: true,
    run,
};

/// How many calls a session makes.
const CALLS: usize = 50;
/// How much the loaded engine touches, in MiB.
const TOUCHED: &str = "1024";

fn run(stage: &Stage<'_>) -> Result<Outcome> {
    let stead = stage.programs.stead();
    let plain_engine = &mut Side::new(stage)?;
    let loaded_engine = &mut Side::new(stage)?;
    let mut loaded = Loaded(
        Command::new(stage.programs.example("loaded_engine"))
            .args([TOUCHED.as_ref(), stead.as_os_str()])
            .env_clear()
            .envs(loaded_engine.world.variables())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?,
    );
    loaded.ready()?;
    let (mut sh, mut bash, mut least) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..stage.rounds(12) {
        plain_engine.round()?;
        sh.push(started("sh", &["-c", "true"])?);
        bash.push(started("bash", &["-c", "true"])?);
        least.push(started("true", &[])?);
        loaded_engine.round()?;
    }
    if loaded_engine.world.engine()? != loaded.0.id() {
        return Err("the sessions were not served by the loaded engine".into());
    }
    let touched = format!("the same, {TOUCHED} MiB touched");
    let rows = vec![
        plain_engine.row("`bash` call with `true`", &sh)?,
        loaded_engine.row(&touched, &sh)?,
        Row::new("its append", shown(middle("an append", &plain_engine.appends)?)),
        Row::new("`sh -c true`", shown(middle("sh", &sh)?)),
        Row::new("`bash -c true`", shown(middle("bash", &bash)?))
            .ratio(ratio("bash", &bash, &sh)?, "`sh -c true`"),
        Row::new("`true`", shown(middle("true", &least)?)),
    ];
    let limit = format!(
        "The limit is the shell that runs the command, which is `bash`: the call takes {:.2} times \
         as long as `bash -c true` by itself, and {} more. In that time the session allows the \
         call, the spawner hands it to the supervisor that waits for one, and that makes the log \
         and looks the program up; in the end it makes sure that no process is left.",
        ratio("a call", &plain_engine.calls, &bash)?,
        shown(middle("a call", &plain_engine.calls)? - middle("bash", &bash)?)
    );
    let mut notes = vec![limit];
    notes.extend(which_sh());
    Ok(Outcome { rows, notes })
}

/// Which shell `sh` is here: `bash` itself on some systems, a much smaller one on others.
fn which_sh() -> Option<String> {
    let program = std::fs::canonicalize("/bin/sh").ok()?;
    let name = program.file_name()?.to_string_lossy().into_owned();
    Some(format!("`sh` is `{name}` on this machine."))
}

/// An engine and what its calls took, the median of each round.
struct Side {
    world: World,
    log: Log,
    calls: Vec<f64>,
    appends: Vec<f64>,
}

impl Side {
    fn new(stage: &Stage<'_>) -> Result<Self> {
        let mut world = World::new(stage.disk.folder(), &stage.programs.stead())?;
        world.set("STEAD_LOG", FILTER);
        let log = Log::new(world.log());
        Ok(Self { world, log, calls: Vec::new(), appends: Vec::new() })
    }

    fn round(&mut self) -> Result<()> {
        self.world.play(&playbook(CALLS), Duration::from_mins(2))?;
        // The last call is the one that says that all is played.
        let times = self.log.next(|seen| seen.calls.len() > CALLS)?;
        let calls: Vec<f64> = times.calls.into_iter().take(CALLS).collect();
        self.calls.push(middle("a call", &calls)?);
        self.appends.push(middle("an append", &times.appends)?);
        Ok(())
    }

    fn row(&self, what: &str, sh: &[f64]) -> Result<Row> {
        let row = Row::new(what, shown(middle("a call", &self.calls)?));
        Ok(row.held_to(ratio("a call", &self.calls, sh)?, "`sh -c true`", Goal::AtMost(3.0)))
    }
}

/// The engine that has touched much memory; it goes when the bench does.
struct Loaded(Child);

impl Loaded {
    /// Waits until it listens: it says so with a line.
    fn ready(&mut self) -> Result<()> {
        let output = self.0.stdout.take().ok_or("the loaded engine has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        if line.trim() == "ready" { Ok(()) } else { Err("the loaded engine did not start".into()) }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The median time of a process.
fn started(program: &str, arguments: &[&str]) -> Result<f64> {
    let times: Result<Vec<f64>> = (0..CALLS).map(|_| process(plain(program, arguments))).collect();
    Ok(middle(program, &times?)?)
}

fn playbook(calls: usize) -> String {
    format!(
        "[[agent]]\npath = \"/root\"\n[[agent.turn]]\nstep = [\n  \
         {{ label = \"again\", call = {{ tool = \"bash\", with = {{ command = \"true\" }} }} }},\n  \
         {{ goto = \"again\", at_most = {} }},\n  \
         {{ call = {{ tool = \"bash\", with = {{ command = \"touch {DONE}\" }} }} }},\n  \
         {{ say = \"done\" }},\n]\n",
        calls - 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_makes_as_many_calls_as_are_counted() {
        let playbook: toml::Table = playbook(50).parse().unwrap();
        let steps = &playbook["agent"][0]["turn"][0]["step"];
        assert_eq!(steps[1]["at_most"].as_integer(), Some(49));
    }
}
