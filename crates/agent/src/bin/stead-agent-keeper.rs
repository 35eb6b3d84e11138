//! The keeper alone, for the tests of this package; with `listen`, a server for them to keep.
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).is_none() {
        return stead_process::serve_keeper();
    }
    match listen() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Answers each connection on `STEAD_PORT` with `STEAD_AGENT`, for ever.
fn listen() -> std::io::Result<()> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let listener = TcpListener::bind(format!("127.0.0.1:{}", variable("STEAD_PORT")))?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        writeln!(stream, "{} listens", variable("STEAD_AGENT"))?;
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read(&mut [0]);
    }
    Ok(())
}
