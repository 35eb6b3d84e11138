//! The kill walk over a task's way into the original: run in private copies, review, apply, edit on,
//! review, apply again, discard; killed with SIGKILL before and after each step of the engine. What
//! the person has is the old tree, or the new one, or is named as half-way and made whole by the
//! next command, whatever that is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]
#![cfg(feature = "steps")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::copies::RUNS;
use common::{check_told, client, follow, log, message, patient_client, runtime, start, world};
use stead_core::delegated::ApplyOutcome;
use stead_core::event::{Event, WorldEvent};
use stead_core::id::{SessionId, SlotName, TaskId};
use stead_core::layout::Placement;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_engine::Client;
use stead_engine::api::{ApplyParams, CopyState, DiscardParams, EventNotification, ReviewParams};
use stead_testkit::{World, within};

/// What is worked on, so that doing it twice is doing it once. It has every kind of change: a file
/// that is written, one that goes with its folder, one that comes with its folder, a mode, a link.
const WORK: [&str; 2] = [
    "printf 'one\\nmore\\n' > a.txt; chmod 755 run; rm -rf sub; mkdir -p new/deep; \
     printf x > new/deep/x; ln -sfn a.txt link",
    "printf 'one\\nmore\\nagain\\n' > a.txt; rm -rf new link; mkdir -p sub; printf y > sub/b.txt",
];
const TASK: TaskId = TaskId(1);
/// The stretch in which the journey brings what it worked on second begins after this one.
const SECOND: usize = 4;
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Paths below the work folder with their modes and contents.
type Tree = BTreeMap<String, (u32, Vec<u8>)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Git,
    Plain,
}

/// How far the journey is, as the person sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Run,
    Review,
    Apply,
    Discard,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Run, Self::Review, Self::Apply, Self::Discard];

    fn mark(self) -> String {
        format!("# {self:?}")
    }
}

/// The trees of a journey that nobody disturbs, and its passes.
struct Known {
    trees: [Tree; 3],
    passes: Vec<Pass>,
}

/// One pass of a step.
struct Pass {
    /// From 1.
    number: usize,
    phase: Phase,
    /// How often the journey was in a phase before.
    stretch: usize,
    /// The step and its moment.
    step: String,
}

impl Known {
    /// The passes of an apply, each; of everything else, where the same step is passed for one file
    /// after the other, the first and the last of a stretch.
    fn telling(&self) -> Vec<&Pass> {
        let same = |one: &Pass, other: &Pass| {
            (one.stretch, one.step.as_str()) == (other.stretch, other.step.as_str())
        };
        let is_telling = |at: usize, pass: &Pass| {
            pass.phase == Phase::Apply
                || !self.passes[..at].iter().any(|before| same(before, pass))
                || !self.passes[at + 1..].iter().any(|after| same(after, pass))
        };
        let passes = self.passes.iter().enumerate();
        passes.filter(|(at, pass)| is_telling(*at, pass)).map(|(_, pass)| pass).collect()
    }
}

fn session() -> SessionId {
    SessionId::parse("walk").unwrap()
}

fn prepared(kind: Kind) -> World {
    let world = world();
    world.write("a.txt", "one\n");
    world.write("sub/b.txt", "two\n");
    world.write("run", "#!/bin/sh\n");
    if kind == Kind::Git {
        for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "first"]] {
            let done = Command::new("git")
                .current_dir(world.work())
                .args(["-c", "user.name=n", "-c", "user.email=e@x"])
                .args(arguments)
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("HOME", world.folder())
                .status();
            assert!(done.unwrap().success(), "git {arguments:?}");
        }
    }
    world
}

/// The work folder but for its `.git` and what an apply has there for its own moment, with whether
/// it has anything.
fn tree(world: &World) -> (Tree, bool) {
    let (mut tree, halfway) = listed(&world.work());
    tree.retain(|path, _| path != ".git" && !path.starts_with(".git/"));
    (tree, halfway)
}

fn listed(work: &Path) -> (Tree, bool) {
    let (mut tree, mut halfway) = (Tree::new(), false);
    let mut folders = vec![work.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let shown = path.strip_prefix(work).unwrap().to_str().unwrap().to_owned();
            if shown.contains(".stead-new-") || shown.ends_with("index.lock") {
                halfway = true;
                continue;
            }
            let found = path.symlink_metadata().unwrap();
            let content = if found.is_dir() {
                folders.push(path);
                Vec::new()
            } else if found.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            tree.insert(shown, (found.permissions().mode(), content));
        }
    }
    (tree, halfway)
}

/// What a client was told and answered until the engine was gone.
#[derive(Default)]
struct Told {
    events: Vec<EventNotification>,
    reviews: usize,
    applied: usize,
    discarded: bool,
}

/// The journey, until it is done or the engine is gone.
async fn journey(
    world: &World,
    client: &Client,
    told: &mut Told,
    mut at: impl FnMut(Phase),
) -> Result<(), Refusal> {
    let session = session();
    at(Phase::Run);
    let mut begin = start(world, session.as_str(), RUNS, WORK[0]);
    begin.placement = Placement::PrivateCopies;
    client.start(&begin).await?;
    heard(told, client, 0).await?;
    bring(client, told, &mut at).await?;
    at(Phase::Run);
    let before = told.events.len();
    client.send(&session, &message(world, "second", "/root", WORK[1], true)).await?;
    heard(told, client, u64::try_from(before).unwrap()).await?;
    // A review is stored between, which nobody was told of.
    bring(client, told, &mut at).await?;
    at(Phase::Discard);
    client.discard(&session, TASK, &DiscardParams { slot: None }).await?;
    told.discarded = true;
    Ok(())
}

async fn heard(told: &mut Told, client: &Client, after: u64) -> Result<(), Refusal> {
    told.events.extend(follow(client, &session(), after).await);
    let is_end = |e: &EventNotification| e.kind == "turn-settled" && e.position > after;
    match told.events.last() {
        Some(last) if is_end(last) => Ok(()),
        _ => Err(Refusal::new(RefusalKind::Unavailable, "the engine is gone")),
    }
}

/// Reviews and applies.
async fn bring(
    client: &Client,
    told: &mut Told,
    at: &mut impl FnMut(Phase),
) -> Result<(), Refusal> {
    let slot = slot(client).await?;
    at(Phase::Review);
    let params = ReviewParams { slot: slot.clone(), most_lines: None };
    client.review(&session(), TASK, &params).await?;
    told.reviews += 1;
    at(Phase::Apply);
    let applied = client.apply(&session(), TASK, &ApplyParams { slot }).await?;
    match applied.outcome {
        ApplyOutcome::Applied { .. } => told.applied += 1,
        other => panic!("an apply that nobody disturbs: {other:?}"),
    }
    Ok(())
}

async fn slot(client: &Client) -> Result<SlotName, Refusal> {
    Ok(client.tasks(&session()).await?.delegated[0].slots[0].slot.clone())
}

/// The journey undisturbed.
fn known(kind: Kind) -> Known {
    let mut world = prepared(kind);
    let record = world.folder().join("steps");
    world.set("STEAD_STEPS", format!("record={}", record.display()));
    let mut trees = vec![tree(&world).0];
    let mut told = Told::default();
    let done = runtime().block_on(async {
        let client = client(&world).await?;
        let mut applies = 0;
        journey(&world, &client, &mut told, |phase| {
            let mut file = fs::OpenOptions::new().append(true).create(true).open(&record).unwrap();
            file.write_all(format!("{}\n", phase.mark()).as_bytes()).unwrap();
            applies += usize::from(phase == Phase::Apply);
            if applies >= trees.len() && phase != Phase::Apply {
                trees.push(tree(&world).0);
            }
        })
        .await
    });
    done.unwrap();
    let (mut phase, mut stretch) = (Phase::Run, 0);
    let mut passes = Vec::new();
    for line in fs::read_to_string(&record).unwrap().lines() {
        if let Some(next) = Phase::ALL.into_iter().find(|phase| phase.mark() == line) {
            (phase, stretch) = (next, stretch + 1);
        } else {
            let (number, step) = (passes.len() + 1, line.to_owned());
            passes.push(Pass { number, phase, stretch, step });
        }
    }
    Known { trees: trees.try_into().unwrap(), passes }
}

/// One part of the kills at the passes that `wanted` says.
fn walk(kind: Kind, edits: bool, (part, parts): (usize, usize), wanted: impl Fn(&Pass) -> bool) {
    let known = known(kind);
    let passes = known.telling().into_iter().filter(|pass| wanted(pass));
    let numbers: Vec<usize> = passes.map(|pass| pass.number).skip(part).step_by(parts).collect();
    let mut killed = 0;
    for number in &numbers {
        killed += usize::from(kill_at(kind, *number, edits, &known.trees));
    }
    assert!(killed * 10 >= numbers.len() * 9, "only {killed} of {} were killed", numbers.len());
}

/// The files of the home that say that an apply is half-way.
fn journals(world: &World) -> Vec<PathBuf> {
    let listed = fs::read_dir(world.home().join("applies")).into_iter().flatten();
    listed
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension() == Some("journal".as_ref()))
        .collect()
}

/// What the log says: reviews, outcomes of applies that applied, whether the copy was discarded.
fn recorded(world: &World) -> (usize, usize, bool) {
    let records = stead_store::Store::open_reader(&world.home())
        .and_then(|reader| reader.read(&session(), 1, usize::MAX))
        .unwrap_or_default();
    let (mut reviews, mut applied, mut discarded) = (0, 0, false);
    for record in records {
        match record.envelope.event {
            Event::World(WorldEvent::CopyReviewed { .. }) => reviews += 1,
            Event::World(WorldEvent::ApplyEnded {
                outcome: ApplyOutcome::Applied { .. }, ..
            }) => applied += 1,
            Event::World(WorldEvent::CopyDiscarded { .. }) => discarded = true,
            _ => {}
        }
    }
    (reviews, applied, discarded)
}

/// One walk: whether the kill came before the journey's end.
fn kill_at(kind: Kind, number: usize, edits: bool, trees: &[Tree; 3]) -> bool {
    let mut world = prepared(kind);
    let counter = world.folder().join("counter");
    world.set("STEAD_STEPS", format!("kill={number},counter={}", counter.display()));
    let repository = (kind == Kind::Git).then(|| listed(&world.work().join(".git")).0);
    let runtime = runtime();
    let mut told = Told::default();
    let done = runtime.block_on(async {
        let client = client(&world).await?;
        journey(&world, &client, &mut told, |_| {}).await
    });
    world.unset("STEAD_STEPS");
    if let Some(pid) = world.engine().filter(|_| done.is_err()) {
        let link = format!("/proc/{pid}/exe");
        within(PATIENCE, "the engine is gone", || fs::read_link(&link).is_err().then_some(()));
    }
    let (reviews, applied, discarded) = recorded(&world);
    assert!(reviews >= told.reviews, "at {number}: a review that was answered is lost");
    assert!(applied >= told.applied, "at {number}: an apply that was answered is lost");
    assert!(discarded >= told.discarded, "at {number}: a discard that was answered is lost");
    let name = |tree: &Tree| trees.iter().position(|known| known == tree);

    // In the moment of the kill: the old tree, or the new one, or named as half-way.
    let (found, halfway) = tree(&world);
    let found = name(&found);
    if found != Some(applied) && found != Some(applied + 1) || halfway {
        assert!(!journals(&world).is_empty(), "at {number}: half-way without a journal");
        let locked = world.work().join(".git/index.lock").exists();
        assert!(found.is_some() || kind == Kind::Plain || locked, "at {number}: nothing holds Git");
    }
    let named = !journals(&world).is_empty();
    let mine = edits.then(|| world.write("a.txt", "mine\n"));
    next_command(&world, number, named);
    match &mine {
        Some(mine) => {
            assert_eq!(
                fs::read(mine).unwrap(),
                b"mine\n",
                "at {number}: the person's edit is lost"
            );
        }
        None => check_whole(&world, number, &trees[applied]),
    }

    runtime.block_on(async {
        let client = patient_client(&world).await;
        if let Some(mine) = &mine {
            disturbed(&client, number, mine).await;
            let old = &trees[applied]["a.txt"];
            fs::write(mine, &old.1).unwrap();
            // What the outcome that could not be reached left is the person's, by kind and mode.
            check_whole(&world, number, &trees[applied]);
        }
        go_on(&world, &client, number, trees).await;
        let stored = match log(&client, &session()).await {
            Err(refusal) if refusal.kind == RefusalKind::NotFound => Vec::new(),
            stored => stored.unwrap(),
        };
        check_told(&told.events, &stored, number);
    });
    check_tidy(&world, number, edits);
    // Its index, its branches and its objects are the person's.
    let after = (kind == Kind::Git).then(|| listed(&world.work().join(".git")).0);
    assert!(repository == after, "at {number}: the repository was written");
    done.is_err()
}

/// Whatever command comes next makes it whole, and names what was half-way.
fn next_command(world: &World, number: usize, halfway: bool) {
    let asks = number.is_multiple_of(2);
    let arguments: &[&str] = if asks { &["doctor"] } else { &["task", "show", "1"] };
    let output = world.run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!halfway || errors.contains("cut short"), "at {number}: {errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!halfway || !asks || text.contains("cut short"), "at {number}: {text}");
}

fn check_whole(world: &World, number: usize, expected: &Tree) {
    let (found, halfway) = tree(world);
    let differ: Vec<&String> = found
        .keys()
        .chain(expected.keys())
        .filter(|path| found.get(*path) != expected.get(*path))
        .collect();
    assert!(differ.is_empty(), "at {number}: {differ:?}");
    assert!(!halfway, "at {number}: an apply left its files");
}

/// The person's own edit stays, whatever is tried.
async fn disturbed(client: &Client, number: usize, mine: &Path) {
    let mine_stays = || assert_eq!(fs::read(mine).unwrap(), b"mine\n", "at {number}");
    if settled(client).await {
        mine_stays();
        let slot = slot(client).await.unwrap();
        let params = ReviewParams { slot: slot.clone(), most_lines: None };
        client.review(&session(), TASK, &params).await.unwrap();
        let answer = client.apply(&session(), TASK, &ApplyParams { slot }).await;
        let is_applied = matches!(&answer, Ok(a) if matches!(a.outcome, ApplyOutcome::Applied { .. }) && !a.before);
        assert!(!is_applied, "at {number}: {answer:?}");
    }
    mine_stays();
}

/// Waits until the session is idle; false when there is no session with copies.
async fn settled(client: &Client) -> bool {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match client.tree(&session()).await {
            Ok(tree) if tree.agents.is_empty() => return false,
            Ok(tree) if tree.agents.iter().all(|agent| agent.turn.is_none()) => break,
            Ok(_) => {}
            Err(refusal) if refusal.kind == RefusalKind::NotFound => return false,
            Err(refusal) => panic!("{refusal}"),
        }
        assert!(tokio::time::Instant::now() < deadline, "the session does not settle");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let tasks = client.tasks(&session()).await.unwrap();
    tasks.delegated.first().is_some_and(|own| own.admitted)
}

/// The journey is gone on with, from wherever it is.
async fn go_on(world: &World, client: &Client, number: usize, trees: &[Tree; 3]) {
    if !settled(client).await {
        // Nothing came of the start: it can be made again, under another name.
        let mut begin = start(world, "again", RUNS, "true");
        begin.placement = Placement::PrivateCopies;
        let again = client.start(&begin).await.unwrap().session;
        let told = follow(client, &again, 0).await;
        assert_eq!(told.last().unwrap().body["outcome"], "completed", "at {number}");
        return;
    }
    let (_, applied, discarded) = recorded(world);
    let copy = world.home().join("copies/walk/1").join(slot(client).await.unwrap().as_str());
    if !discarded {
        assert!(copy.is_dir(), "at {number}: the copy is gone");
        for (at, work) in WORK.iter().enumerate().skip(applied.min(1)) {
            let before = log(client, &session()).await.unwrap().len();
            let again = message(world, &format!("again-{at}"), "/root", work, true);
            client.send(&session(), &again).await.unwrap();
            let told = follow(client, &session(), u64::try_from(before).unwrap()).await;
            assert_eq!(told.last().unwrap().body["outcome"], "completed", "at {number}");
            if applied <= at {
                bring(client, &mut Told::default(), &mut |_| {}).await.unwrap();
            }
            check_whole(world, number, &trees[applied.max(at + 1)]);
        }
        client.discard(&session(), TASK, &DiscardParams { slot: None }).await.unwrap();
    }
    let tasks = client.tasks(&session()).await.unwrap();
    assert_eq!(tasks.delegated[0].slots[0].state, CopyState::Discarded, "at {number}");
    assert!(!copy.exists(), "at {number}: a discarded copy is still there");
    let kept = fs::read_dir(world.home().join("trash")).unwrap();
    let kept = kept.filter(|entry| entry.as_ref().unwrap().path().join("kept").exists()).count();
    assert_eq!(kept, 1, "at {number}: the copy is not in the trash");
}

/// Nothing of what was cut short lies about.
fn check_tidy(world: &World, number: usize, edits: bool) {
    let staging = world.home().join("copies/.staging");
    let staged = fs::read_dir(&staging).into_iter().flatten().count();
    assert_eq!(staged, 0, "at {number}: the staging is not empty");
    assert_eq!(journals(world), Vec::<PathBuf>::new(), "at {number}");
    assert!(edits || !world.home().join("applies/rescue").exists(), "at {number}");
    assert!(!tree(world).1, "at {number}: an apply left its files");
    let output = world.run(["doctor"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "at {number}: {text}");
}

#[test]
fn the_journey_passes_every_kind_of_step() {
    let known = known(Kind::Git);
    let steps: BTreeSet<&str> = known.passes.iter().map(|pass| pass.step.as_str()).collect();
    for step in [
        "copies.publish",
        "copies.journal",
        "copies.index-lock",
        "copies.index-unlock",
        "copies.forget",
        "files.trash",
        "store.append",
    ] {
        for moment in ["before", "after"] {
            let step = format!("{step} {moment}");
            assert!(steps.contains(step.as_str()), "{step} is not passed: {steps:#?}");
        }
    }
}

#[test]
fn copies_68_killed_at_every_eighth_step_from_the_first() {
    walk(Kind::Git, false, (0, 8), |_| true);
}

#[test]
fn copies_68_killed_at_every_eighth_step_from_the_second() {
    walk(Kind::Git, false, (1, 8), |_| true);
}

#[test]
fn copies_68_killed_at_every_eighth_step_from_the_third() {
    walk(Kind::Git, false, (2, 8), |_| true);
}

#[test]
fn copies_68_killed_at_every_eighth_step_from_the_fourth() {
    walk(Kind::Git, false, (3, 8), |_| true);
}

#[test]
fn copies_68_killed_at_every_eighth_step_from_the_fifth() {
    walk(Kind::Git, false, (4, 8), |_| true);
}

#[test]
fn copies_68_killed_at_every_eighth_step_from_the_sixth() {
    walk(Kind::Git, false, (5, 8), |_| true);
}

#[test]
fn copies_68_killed_at_every_eighth_step_from_the_seventh() {
    walk(Kind::Git, false, (6, 8), |_| true);
}

#[test]
fn copies_68_killed_at_every_eighth_step_from_the_eighth() {
    walk(Kind::Git, false, (7, 8), |_| true);
}

#[test]
fn copies_69_an_edit_right_after_the_kill_stays_at_every_fourth_step_from_the_first() {
    walk(Kind::Git, true, (0, 4), is_second_apply);
}

#[test]
fn copies_69_an_edit_right_after_the_kill_stays_at_every_fourth_step_from_the_second() {
    walk(Kind::Git, true, (1, 4), is_second_apply);
}

#[test]
fn copies_69_an_edit_right_after_the_kill_stays_at_every_fourth_step_from_the_third() {
    walk(Kind::Git, true, (2, 4), is_second_apply);
}

#[test]
fn copies_69_an_edit_right_after_the_kill_stays_at_every_fourth_step_from_the_fourth() {
    walk(Kind::Git, true, (3, 4), is_second_apply);
}

#[test]
fn copies_68_a_plain_folder_is_whole_again_killed_at_odd_steps_of_an_apply() {
    walk(Kind::Plain, false, (0, 2), is_second_apply);
}

#[test]
fn copies_68_a_plain_folder_is_whole_again_killed_at_even_steps_of_an_apply() {
    walk(Kind::Plain, false, (1, 2), is_second_apply);
}

/// The command that makes it whole may be killed as well, at each of its steps.
#[test]
fn copies_68_what_makes_it_whole_may_be_killed_too() {
    for kind in [Kind::Git, Kind::Plain] {
        let known = known(kind);
        let applies: Vec<&Pass> = known.passes.iter().filter(|p| is_second_apply(p)).collect();
        for at in [applies.len() / 3, applies.len() / 2, applies.len() * 2 / 3] {
            kill_the_recovery(kind, applies[at].number, &known.trees);
        }
    }
}

fn kill_the_recovery(kind: Kind, number: usize, trees: &[Tree; 3]) {
    let mut world = prepared(kind);
    let counter = world.folder().join("counter");
    world.set("STEAD_STEPS", format!("kill={number},counter={}", counter.display()));
    let done = runtime().block_on(async {
        let client = client(&world).await?;
        journey(&world, &client, &mut Told::default(), |_| {}).await
    });
    assert!(done.is_err() && !journals(&world).is_empty(), "{number} is within an apply");
    let (_, applied, _) = recorded(&world);
    let kills = (1..).take_while(|kill| {
        world.set("STEAD_STEPS", format!("kill={kill}"));
        world.run(["doctor"]).status.code().is_none()
    });
    assert!(kills.count() > 2, "at {number}: the recovery passes no steps");
    world.unset("STEAD_STEPS");
    check_whole(&world, number, &trees[applied]);
    runtime().block_on(async {
        let client = patient_client(&world).await;
        go_on(&world, &client, number, trees).await;
    });
    check_tidy(&world, number, false);
}

/// The one that writes over what an apply wrote.
fn is_second_apply(pass: &Pass) -> bool {
    pass.phase == Phase::Apply && pass.stretch > SECOND
}
