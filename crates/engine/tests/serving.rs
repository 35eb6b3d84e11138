//! An engine whose home, socket or runtime folder goes while it serves; one request twice at once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use stead_core::event::Outcome;
use stead_core::id::{RequestId, SessionId};
use stead_core::layout::{AbsoluteDir, Access, Placement};
use stead_core::path::AgentPath;
use stead_core::permission::Mode;
use stead_core::refusal::Refusal;
use stead_engine::api::{Attendance, DriverParams, RootParams, SendParams, StartParams};
use stead_engine::{Client, Home, Options, serve};
use tempfile::TempDir;

struct Bench {
    folder: TempDir,
    home: Home,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        fs::create_dir(base.join("app")).unwrap();
        let variables = [
            ("HOME", base.join("home")),
            ("STEAD_HOME", base.join("data")),
            ("XDG_RUNTIME_DIR", base.join("run")),
        ];
        let variables: BTreeMap<_, _> =
            variables.into_iter().map(|(name, path)| (name.into(), path.into())).collect();
        let home = Home::derive(&variables, Path::new("/tmp"), 0).unwrap();
        Self { folder, home }
    }

    fn serve(&self) -> JoinHandle<Result<(), Refusal>> {
        let options = Options {
            home: self.home.clone(),
            spawner: (env!("CARGO_BIN_EXE_stead-engine-spawner").into(), Vec::new()),
            keeper: (env!("CARGO_BIN_EXE_stead-engine-spawner").into(), Vec::new()),
            environment: std::env::vars_os().collect(),
            build: "test".into(),
        };
        let (ready, listens) = std::sync::mpsc::channel();
        let engine = std::thread::spawn(move || serve(options, || ready.send(()).unwrap()));
        let heard = listens.recv_timeout(Duration::from_mins(1));
        assert!(heard.is_ok(), "it does not listen; finished: {}", engine.is_finished());
        engine
    }

    fn client(&self) -> Client {
        Client::new(self.home.socket().unwrap())
    }

    async fn start(&self, playbook: &str) -> SessionId {
        let root = RootParams {
            directory: AbsoluteDir::new(self.folder.path().canonicalize().unwrap().join("app"))
                .unwrap(),
            slot: None,
            access: Access::Write,
        };
        let params = StartParams {
            request: request(),
            roots: vec![root],
            placement: Placement::InPlace,
            mode: Mode::FullAuto,
            plan_ceiling: false,
            label: None,
            driver: DriverParams::Playbook { name: "t.toml".into(), text: playbook.into() },
            message: "Go.".into(),
            attendance: Attendance::Headless,
            environment: std::env::vars().filter(|(name, _)| name == "PATH").collect(),
        };
        self.client().start(&params).await.unwrap().session
    }

    async fn outcome(&self, session: &SessionId) -> Outcome {
        let deadline = Instant::now() + Duration::from_mins(1);
        while Instant::now() < deadline {
            if let Ok(result) = self.client().result(session, &AgentPath::root()).await {
                return result.outcome;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the turn has not ended");
    }
}

fn request() -> RequestId {
    RequestId::parse(&uuid::Uuid::now_v7().to_string()).unwrap()
}

const DONE: &str = "[[agent]]\npath = \"**\"\n[[agent.turn]]\nstep = [{ say = \"done\" }]\n";
const SLOW: &str = "[[agent]]\npath = \"**\"\n[[agent.turn]]\nstep = [\n\
    { call = { tool = \"bash\", with = { command = \"sleep 5\" } } },\n{ say = \"done\" }]\n";

#[tokio::test(flavor = "multi_thread")]
async fn one_request_many_times_at_once_has_one_effect_and_one_answer() {
    let bench = Bench::new();
    let engine = bench.serve();
    let session = bench.start(DONE).await;
    bench.outcome(&session).await;
    let before = bench.client().tree(&session).await.unwrap().agents[0].turns;
    for _ in 0..10 {
        let params = SendParams {
            request: request(),
            target: "/root".into(),
            message: "Again.".into(),
            wake: false,
            attendance: Attendance::Headless,
            environment: BTreeMap::new(),
        };
        let senders = (0..6).map(|_| {
            let (client, session, params) = (bench.client(), session.clone(), params.clone());
            tokio::spawn(async move { client.send(&session, &params).await })
        });
        let mut mails = Vec::new();
        for sender in senders.collect::<Vec<_>>() {
            mails.push(sender.await.unwrap().unwrap().receipt.mail);
        }
        assert!(mails.iter().all(|mail| *mail == mails[0]), "{mails:?}");
        bench.outcome(&session).await;
    }
    let tree = bench.client().tree(&session).await.unwrap();
    assert_eq!(tree.agents[0].turns, before + 10);
    bench.client().stop().await.unwrap();
    engine.join().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_was_removed_takes_nothing_more_and_its_successor_is_left_alone() {
    let bench = Bench::new();
    let engine = bench.serve();
    bench.start(DONE).await;
    fs::remove_dir_all(bench.home.data()).unwrap();
    let refusal = bench.client().sessions().await.unwrap_err();
    assert!(refusal.line.contains("was removed"), "{refusal}");
    // Another engine for the new home, before the old one has noticed.
    let successor = bench.serve();
    engine.join().unwrap().unwrap();
    let session = bench.start(DONE).await;
    assert_eq!(bench.outcome(&session).await, Outcome::Completed);
    bench.client().stop().await.unwrap();
    successor.join().unwrap().unwrap();
}

/// Logging out removes the runtime folder.
#[tokio::test(flavor = "multi_thread")]
async fn work_goes_on_without_the_runtime_folder_and_is_found_again() {
    let bench = Bench::new();
    let engine = bench.serve();
    let session = bench.start(SLOW).await;
    fs::remove_dir_all(bench.home.runtime()).unwrap();
    assert_eq!(bench.outcome(&session).await, Outcome::Completed);
    // Nothing is at work now: nobody is kept from starting another engine.
    fs::remove_dir_all(bench.home.runtime()).unwrap();
    engine.join().unwrap().unwrap();
}
