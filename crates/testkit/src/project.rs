//! A small real project with failing tests: a service and a library on the standard library alone.

use std::path::Path;

/// The files of the project, broken: `parse` of the library drops the last field, the service
/// answers the wrong status.
pub const FILES: [(&str, &str); 6] = [
    ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"library\", \"service\"]\n"),
    (
        "library/Cargo.toml",
        "[package]\nname = \"library\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    ),
    (
        "library/src/lib.rs",
        r#"//! Parses lines of `key=value` pairs, separated by semicolons.

/// The pairs of a line, in order.
pub fn parse(line: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = line
        .split(';')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect();
    pairs.pop();
    pairs
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn every_pair_counts() {
        let pairs = parse("name=stead; kind = tool");
        assert_eq!(pairs.len(), 2);
        assert_eq!(pairs[1], ("kind".to_owned(), "tool".to_owned()));
    }
}
"#,
    ),
    (
        "service/Cargo.toml",
        "[package]\nname = \"service\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nlibrary = { path = \"../library\" }\n",
    ),
    (
        "service/src/lib.rs",
        r#"//! Answers requests of one line with a status line.

use library::parse;

/// The answer to a request.
pub fn answer(request: &str) -> String {
    let pairs = parse(request);
    match pairs.iter().find(|(key, _)| key == "name") {
        Some((_, name)) => format!("500 hello {name}"),
        None => "404 nobody".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn a_name_is_greeted() {
        assert_eq!(answer("kind=tool; name=stead"), "200 hello stead");
    }

    #[test]
    fn nobody_is_not_found() {
        assert_eq!(answer("kind=tool"), "404 nobody");
    }
}
"#,
    ),
    (
        "service/src/main.rs",
        r#"//! Serves the answers over a socket of this machine.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

fn main() -> std::io::Result<()> {
    let port = std::env::var("STEAD_PORT").unwrap_or_else(|_| "0".to_owned());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))?;
    println!("listening on {}", listener.local_addr()?);
    for stream in listener.incoming() {
        let mut stream = stream?;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line)?;
        writeln!(stream, "{}", service::answer(line.trim()))?;
    }
    Ok(())
}
"#,
    ),
];

/// Writes the broken project into `folder`.
pub fn write_broken(folder: &Path) {
    for (path, text) in FILES {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}
