//! What is in a tree: kinds, permission bits, contents by digest.

mod code;
mod entry;

pub use code::ManifestError;
pub use entry::{Entry, Manifest, Node, Seen};
