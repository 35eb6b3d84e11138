//! Places: directories equipped for the processes of an agent, and the runs in them.
//!
//! A place is a directory that stead did not make, plus what stead adds outside of it: a scratch
//! folder that is `TMPDIR`, a block of ports, the environment, the socket on which its processes
//! are that agent. Runs in places are bounded over the whole host ([`Host::enter`]); what they
//! leave lives until a release ([`Host::release`]). All of this works without the engine, over
//! files and the kernel's locks, so that no crash of anybody leaves a count or a lock behind.

mod admission;
mod environment;
mod error;
mod exec;
mod host;
mod line;
mod listing;
mod place;
mod ports;
mod registry;
mod release;
mod run;
mod sockets;
mod top;

pub use admission::{Ask, Entered, Holding, LONGEST_WAIT, Notice, Patience, Room};
pub use environment::Identity;
pub use error::{ExecError, HostError, ReleaseError};
pub use exec::{GRACE, Request, Started, TIME_LIMIT};
pub use host::Host;
pub use listing::{LastRun, Listed};
pub use place::{Place, PlaceError};
pub use ports::{BLOCK, Block, PortRange};
pub use registry::{Adopted, Hold, Presence};
pub use release::{Left, Released, Which};
pub use run::{Processes, Run, RunRecord};
pub use sockets::Listener;
pub use top::{NoPlace, top_of};
