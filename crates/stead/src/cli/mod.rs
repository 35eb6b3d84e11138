//! The command line: one file a verb.

mod apply;
mod completions;
mod demo;
mod discard;
mod doctor;
mod exec;
mod gc;
mod log;
mod mode;
mod paths;
mod permit;
mod places;
mod program;
mod reference;
mod release;
mod review;
mod root_option;
mod roots;
mod run;
mod send;
mod serve;
mod sessions;
mod stop;
mod task;
mod tree;
mod welcome;

pub(crate) use program::{Cli, KEEPER, SPAWNER, run};
