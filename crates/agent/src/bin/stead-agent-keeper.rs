//! The keeper alone, for the tests of this package.
fn main() -> std::process::ExitCode {
    stead_process::serve_keeper()
}
