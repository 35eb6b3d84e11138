//! Following a session while it works: as a tree on a terminal, as a plain log elsewhere.

mod ending;
mod face;
mod fold;
mod follow;
mod keys;
mod screen;
mod view;
mod watch;

pub(crate) use ending::NOT_STARTED;
pub(crate) use face::Face;
pub(crate) use follow::{Follower, Step};
pub(crate) use watch::{Followed, Left, Start, Until, follow, watch};
