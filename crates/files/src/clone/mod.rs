//! Copying a tree into a new folder, whole or not at all.

mod carry;
mod copier;
mod report;
mod settle;
mod still;
mod tree;

pub use report::{Cloned, Method, Obstacle, ObstacleKind};
pub use tree::{CloneOptions, clone};
