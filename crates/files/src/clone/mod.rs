//! Copying a tree into a new folder, whole or not at all.

mod carry;
mod copier;
mod early_sync;
mod report;
mod settle;
mod tree;

pub use report::{Cloned, Method, Obstacle, ObstacleKind};
pub use tree::{CloneOptions, clone};
