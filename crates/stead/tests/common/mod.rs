//! A client of the real program's engine, for tests.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod copies;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use stead_core::id::{RequestId, SessionId};
use stead_core::layout::{AbsoluteDir, Access, Placement};
use stead_core::permission::Mode;
use stead_core::refusal::Refusal;
use stead_engine::api::{
    Attendance, DriverParams, EventNotification, EventsParams, Notification, RootParams,
    SendParams, StartParams,
};
use stead_engine::{BUILD, Client, Home, Launch, connect};
use stead_testkit::World;
use tokio::runtime::Runtime;

/// The program under test.
pub(crate) const STEAD: &str = env!("CARGO_BIN_EXE_stead");

/// A world of the real program, in memory where there is room.
pub(crate) fn world() -> World {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { World::below(memory, STEAD) } else { World::new(STEAD) }
}

/// A runtime for one test.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The home of a world.
pub(crate) fn home(world: &World) -> Home {
    Home::derive(world.variables(), &std::env::temp_dir(), 0).unwrap()
}

/// How the world's engine is started.
pub(crate) fn launch(world: &World) -> Launch {
    Launch {
        program: STEAD.into(),
        arguments: ["serve", "--greet"].map(OsString::from).to_vec(),
        environment: world.variables().clone(),
        build: BUILD.to_owned(),
    }
}

/// A client of the world's engine, which is started when it does not run.
pub(crate) async fn client(world: &World) -> Result<Client, Refusal> {
    connect(&home(world), &launch(world)).await
}

/// The same; an engine that is killed while it starts is started again.
pub(crate) async fn patient_client(world: &World) -> Client {
    let mut last = None;
    for _ in 0..20 {
        match client(world).await {
            Ok(client) => return client,
            Err(refusal) => last = Some(refusal),
        }
    }
    panic!("no engine: {last:?}");
}

/// What starts a session in the world's work folder.
pub(crate) fn start(world: &World, id: &str, playbook: &str, message: &str) -> StartParams {
    StartParams {
        request: RequestId::parse(id).unwrap(),
        roots: vec![RootParams {
            directory: AbsoluteDir::new(world.work()).unwrap(),
            slot: None,
            access: Access::Write,
        }],
        placement: Placement::InPlace,
        mode: Mode::FullAuto,
        plan_ceiling: false,
        label: None,
        driver: DriverParams::Playbook { name: "playbook".to_owned(), text: playbook.to_owned() },
        message: message.to_owned(),
        attendance: Attendance::Headless,
        environment: environment(world),
    }
}

/// A message of the person.
pub(crate) fn message(world: &World, id: &str, target: &str, text: &str, wake: bool) -> SendParams {
    SendParams {
        request: RequestId::parse(id).unwrap(),
        target: target.to_owned(),
        message: text.to_owned(),
        wake,
        attendance: Attendance::Headless,
        environment: environment(world),
    }
}

fn environment(world: &World) -> BTreeMap<String, String> {
    world
        .variables()
        .iter()
        .filter_map(|(k, v)| Some((k.to_str()?.to_owned(), v.to_str()?.to_owned())))
        .collect()
}

/// The events of a session up to now.
pub(crate) async fn log(
    client: &Client,
    session: &SessionId,
) -> Result<Vec<EventNotification>, Refusal> {
    let params = EventsParams { after: 0, follow: false, attached: false };
    let mut events = client.events(session, &params).await?;
    let mut log = Vec::new();
    while let Some(notification) = events.next().await? {
        match notification {
            Notification::Event(event) => log.push(*event),
            Notification::Failed { line } => panic!("{line}"),
            _ => {}
        }
    }
    Ok(log)
}

/// Follows a session until `/root` has settled or the engine is gone, and gives what was told.
pub(crate) async fn follow(
    client: &Client,
    session: &SessionId,
    after: u64,
) -> Vec<EventNotification> {
    let params = EventsParams { after, follow: true, attached: false };
    let mut told = Vec::new();
    let Ok(mut events) = client.events(session, &params).await else { return told };
    while let Ok(Some(notification)) = events.next().await {
        if let Notification::Event(event) = notification {
            let settled = event.kind == "turn-settled" && event.body["path"] == "/root";
            told.push(*event);
            if settled {
                break;
            }
        }
    }
    told
}

/// What a client was told is stored, to the letter.
pub(crate) fn check_told(told: &[EventNotification], stored: &[EventNotification], number: usize) {
    for event in told {
        let same = stored.iter().find(|s| s.position == event.position);
        assert_eq!(
            same.map(|s| (&s.kind, &s.body)),
            Some((&event.kind, &event.body)),
            "at {number}: an event that was told is lost"
        );
    }
}
