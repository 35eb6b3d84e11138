//! The engine: one live owner a root session, the API over it, recovery; and the client.

pub mod api;
mod applies;
mod caller;
mod client;
mod copies;
mod door;
mod drivers;
mod engine;
mod events;
mod forget;
mod garbage;
mod home;
mod launch;
mod presence;
mod registry;
mod roots;
mod serve;
mod server;
mod session;
mod shown;
pub mod text;
mod timing;
mod unrecorded;

pub use applies::{CutShort, finish_applies};
pub use client::{Client, EventStream};
pub use garbage::kept_bodies;
pub use home::Home;
pub use launch::{Greeting, Launch, connect, find_running, read_record};
pub use registry::registered_roots;
pub use serve::{EngineRecord, Options, bound_here, read_settings, serve};

/// The build of this program: a digest of its sources.
pub const BUILD: &str = env!("STEAD_BUILD");
