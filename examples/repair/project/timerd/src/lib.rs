//! A service that adds up spans of time: a request a line, an answer a line.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use spans::{parse, show};

/// The answer to a request: `sum 1h30m 45m` is answered with `200 2h15m`.
pub fn answer(request: &str) -> String {
    let mut words = request.split_whitespace();
    match words.next() {
        Some("sum") => sum(words),
        Some(other) => format!("404 there is no {other}; ask for a sum"),
        None => "400 the request is empty".to_owned(),
    }
}

fn sum<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut total: u64 = 0;
    for word in words {
        match parse(word) {
            Ok(seconds) => total = total.saturating_add(seconds),
            Err(error) => return format!("200 {word}: {error}"),
        }
    }
    format!("200 {}", show(total))
}

/// Serves one connection after another, each on a thread of its own.
pub fn serve(listener: &TcpListener) -> io::Result<()> {
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || converse(&stream));
    }
    Ok(())
}

/// Answers the requests of one connection until its end.
fn converse(stream: &TcpStream) -> io::Result<()> {
    let mut writer = stream;
    let mut lines = BufReader::new(stream).lines();
    if let Some(line) = lines.next() {
        writeln!(writer, "{}", answer(&line?))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn spans_are_added() {
        assert_eq!(answer("sum 1h30m 45m"), "200 2h15m");
        assert_eq!(answer("sum"), "200 0s");
    }

    #[test]
    fn what_cannot_be_added_is_refused() {
        assert_eq!(answer("sum 1h x"), "400 x: `x` is out of place");
        assert_eq!(answer("subtract 1h"), "404 there is no subtract; ask for a sum");
        assert_eq!(answer(""), "400 the request is empty");
    }
}
