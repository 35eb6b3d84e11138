//! Run one turn of an agent: drivers, the loop over a model, tools.

pub mod driver;
pub mod port;

pub use driver::{Driver, Turn, TurnEnd};
pub use port::{Ask, Asked, Entry, Port, SessionTool};
