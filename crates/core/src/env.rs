//! Every environment variable that stead reads or sets, in one place.

/// stead's private data folder on this device.
pub const STEAD_HOME: &str = "STEAD_HOME";
/// The filter of the engine's log, in the syntax of `tracing`.
pub const STEAD_LOG: &str = "STEAD_LOG";
/// Set for what stead starts: the agent's id.
pub const STEAD_SESSION: &str = "STEAD_SESSION";
/// Set for what stead starts: the agent's path.
pub const STEAD_AGENT: &str = "STEAD_AGENT";
/// Set for what stead starts: the socket on which its callers are that agent.
pub const STEAD_SOCKET: &str = "STEAD_SOCKET";
/// Set for what stead starts: the place's directory.
pub const STEAD_PLACE: &str = "STEAD_PLACE";
/// Set for what stead starts: the place's scratch directory; `TMPDIR` is the same.
pub const STEAD_SCRATCH: &str = "STEAD_SCRATCH";
/// Set for runs: which run it is.
pub const STEAD_RUN: &str = "STEAD_RUN";
/// Set for runs: the first port of the place's block; the others have its name and `_0`, `_1`, ….
pub const STEAD_PORT: &str = "STEAD_PORT";
/// Set for runs: how many ports the block has.
pub const STEAD_PORT_COUNT: &str = "STEAD_PORT_COUNT";
/// Read only by builds with crash steps: what a walk does at each of them.
pub const STEAD_STEPS: &str = "STEAD_STEPS";
/// Where data are kept when `STEAD_HOME` is not set.
pub const XDG_DATA_HOME: &str = "XDG_DATA_HOME";
/// Where settings are read.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// Where facts of this host and user are kept.
pub const XDG_STATE_HOME: &str = "XDG_STATE_HOME";
/// Where sockets are kept.
pub const XDG_RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";
/// The person's home folder.
pub const HOME: &str = "HOME";
/// No colours when set and not empty.
pub const NO_COLOR: &str = "NO_COLOR";
