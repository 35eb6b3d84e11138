//! A server for the tests of this package: reads a port and a word from standard input, and answers
//! each connection on that port with the word, for ever.
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

fn main() -> std::io::Result<()> {
    let mut order = String::new();
    std::io::stdin().read_line(&mut order)?;
    let (port, word) = order.trim().split_once(' ').unwrap_or_default();
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        writeln!(stream, "{word} listens")?;
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read(&mut [0]);
    }
    Ok(())
}
