//! An engine that has touched much memory, for `cargo xtask bench bash`: what it starts must not
//! take longer because of that.
//!
//! `loaded_engine MEBIBYTES STEAD` serves the home that the environment names, with the program
//! STEAD as its spawner, and prints `ready`.
#![allow(clippy::print_stdout, reason = "it says when it listens")]

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::Mutex;

use stead_engine::{BUILD, Home, Options, serve};
use tracing_subscriber::EnvFilter;

/// Every page of this size is written to.
const PAGE: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let mebibytes = arguments.next().ok_or("how many mebibytes?")?;
    let mebibytes: usize = mebibytes.to_str().ok_or("mebibytes are digits")?.parse()?;
    let program = arguments.next().map(PathBuf::from).ok_or("which program starts commands?")?;

    let mut touched = vec![0_u8; mebibytes << 20];
    touched.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);

    let variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let user = rustix::process::getuid().as_raw();
    let home = Home::derive(&variables, &std::env::temp_dir(), user).map_err(|e| e.to_string())?;
    stead_files::private_dir(home.data())?;
    stead_files::private_dir(&home.logs())?;
    let log = OpenOptions::new().create(true).append(true).open(home.logs().join("engine.log"))?;
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_env("STEAD_LOG").unwrap_or_default())
        .with_ansi(false)
        .with_writer(Mutex::new(log))
        .init();

    let spawner = (program, vec!["spawner".into()]);
    let keeper = (spawner.0.clone(), vec!["keep".into()]);
    let environment = std::env::vars_os().collect();
    let options = Options { home, spawner, keeper, environment, build: BUILD.to_owned() };
    serve(options, || println!("ready")).map_err(|e| e.to_string())?;
    drop(std::hint::black_box(touched));
    Ok(())
}
