//! Processes: started, watched, bounded in time and output, and ended with everything they
//! started.
//!
//! The engine never forks. It starts one small *spawner* process early ([`Spawner`], whose main is
//! [`serve_spawner`]); the spawner forks a *supervisor* for each run, one ahead of the next request;
//! the supervisor starts the command, keeps its output in a bounded log and ends the whole tree of
//! processes when the command ends, its time is over, a stop is asked for, or the engine or the
//! spawner dies. When a supervisor itself is killed, its processes fall to the spawner, which ends
//! them.
//!
//! Whoever starts a command may keep pipes to its standard input and output ([`Pipes`]): such a
//! child lives as long as it is talked to, and ends like every other run.
//!
//! Short questions to programs that stead trusts, such as `git`, need none of that: [`tool`].
//!
//! Beside it stand runs that outlive whoever started them and leave what they leave: each has a
//! *keeper* of its own ([`keep_here`], [`keep_by`]).
//!
//! Everything here is synchronous and blocks; callers on an async runtime use blocking tasks or
//! poll the descriptor of a [`Run`].

mod command;
mod detached;
pub mod environment;
mod group;
mod guardian;
mod identity;
mod keeper;
mod launch;
mod log;
mod marked;
pub mod output;
mod pipe;
mod replace;
mod run;
mod sink;
mod spawner;
mod spawners;
mod supervisor;
mod system;
pub mod tool;
mod wire;

pub use command::{Command, Pipes};
pub use detached::start_detached;
pub use group::end_tree;
pub use guardian::serve_spawner;
pub use identity::{ProcessIdentity, ancestors, session};
pub use keeper::{
    Errand, Finish, KeepError, Kept, Outcome, Output, Poised, Signals, Stream, end_keepers,
    keep_by, keep_here, kept_by, serve_keeper,
};
pub use marked::{Mark, end_marked};
pub use pipe::{PipeError, Stdin, Stdout};
pub use replace::become_command;
pub use run::{Ended, How, Run, RunError};
pub use spawner::{SpawnError, Spawner};
pub use spawners::Spawners;
