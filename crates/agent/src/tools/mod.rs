//! The tools of stead's own loop: what a model is shown, how its calls are read, and what they do.

mod arguments;
mod authority;
mod bash;
mod catalogue;
mod edit;
mod exec;
mod launch;
mod list;
mod output;
mod read;
mod run;
mod schema;
mod search;
mod shells;
mod write;

pub use arguments::{EditArguments, ListArguments, ReadArguments, SearchArguments, WriteArguments};
pub(crate) use authority::display;
pub(crate) use catalogue::offered;
pub use catalogue::{BashCall, ExecCall, Tool, ToolCallParsed, catalogue};
pub(crate) use output::head;
pub(crate) use run::{Stopped, Tools, ask};
pub use shells::{LONGEST_LIMIT, USUAL_LIMIT, YIELD_AFTER};
