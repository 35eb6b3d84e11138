mod errors;
mod guide;
mod plays;
mod properties;
mod stage;
mod waits;
