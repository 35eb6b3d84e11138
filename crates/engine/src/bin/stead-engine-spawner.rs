//! The spawner alone, for the tests of this package.
fn main() -> std::process::ExitCode {
    stead_process::serve_spawner()
}
