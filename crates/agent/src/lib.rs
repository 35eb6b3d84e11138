//! Run one turn of an agent: drivers, the loop over a model, tools.

mod compact;
mod conversation;
pub mod driver;
mod instructions;
mod looping;
pub mod port;
pub mod prompt;
pub mod tools;

pub use compact::{COMPACT_BYTES, COMPACT_TOKENS, Summary, summarise};
pub use driver::{Driver, Execution, Situation, Turn, TurnEnd};
pub use instructions::{
    INSTRUCTION_FILE, InstructionFile, LARGEST_INSTRUCTIONS, MOST_INSTRUCTIONS, instruction_files,
};
pub use looping::{Loop, MOST_STEPS};
pub use port::{Answering, Ask, Asked, Done, Entry, Port, SessionTool};
