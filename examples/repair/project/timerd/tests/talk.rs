//! A conversation with the service over a socket.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

#[test]
fn one_connection_has_several_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || timerd::serve(&listener));

    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    for (request, expected) in [("sum 40m 50m", "200 1h30m"), ("sum 90s", "200 1m30s")] {
        writeln!(stream, "{request}").unwrap();
        let answer = answers.next().expect("the connection was closed").unwrap();
        assert_eq!(answer, expected);
    }
}
