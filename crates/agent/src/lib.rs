//! Run one turn of an agent: drivers, the loop over a model, tools.

mod compact;
mod conversation;
pub mod driver;
mod looping;
pub mod port;
pub mod prompt;
pub mod tools;

pub use compact::{COMPACT_BYTES, COMPACT_TOKENS, Summary, summarise};
pub use driver::{Driver, Execution, Situation, Turn, TurnEnd};
pub use looping::{Loop, MOST_STEPS};
pub use port::{Answering, Ask, Asked, Done, Entry, Port, SessionTool};
