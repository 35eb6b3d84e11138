//! Serves on a port of this machine; `STEAD_PORT` says which.

use std::net::TcpListener;

fn main() -> std::io::Result<()> {
    let port = std::env::var("STEAD_PORT").unwrap_or_else(|_| "0".to_owned());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))?;
    println!("listening on {}", listener.local_addr()?);
    timerd::serve(&listener)
}
