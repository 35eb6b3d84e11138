//! The project's checks and generators: `cargo xtask COMMAND`.
//!
//! A command is a module with a `run` and one line in [`COMMANDS`]. It answers with a [`Report`];
//! only this file decides about the exit status.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people: what it finds goes to the terminal"
)]

mod bench;
mod check;
mod coverage;
mod field;
mod layers;
mod references;
mod report;
mod rfc;
mod source;
mod suite;
mod tool;
mod workspace;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use report::{Report, Result};

/// One subcommand: its name, what it accepts, what it is for and what it does.
struct Command {
    name: &'static str,
    options: &'static [&'static str],
    says: &'static str,
    run: fn(&Path, &[String]) -> Result<Report>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "check",
        options: &[],
        says: "everything that must hold before a change lands; runs all steps, then sums up",
        run: |root, _| Ok(check::run(root)),
    },
    Command {
        name: "test",
        options: &["--fast"],
        says: "all tests, and what was skipped here; --fast leaves out integration and doc tests",
        run: |root, options| suite::run(root, has(options, "--fast")),
    },
    Command {
        name: "layers",
        options: &[],
        says: "the floors, the dependencies and the doors of the house",
        run: |root, _| layers::run(root),
    },
    Command {
        name: "rfc",
        options: &["--write"],
        says: "the decision records; --write generates docs/rfc/INDEX.md",
        run: |root, options| rfc::run(root, has(options, "--write")),
    },
    Command {
        name: "coverage",
        options: &["--write"],
        says: "every case and what shows it; --write generates docs/coverage.md",
        run: |root, options| coverage::run(root, has(options, "--write")),
    },
    Command {
        name: "references",
        options: &["--write"],
        says: "pages the program writes about itself; --write generates them",
        run: |root, options| references::run(root, has(options, "--write")),
    },
    Command {
        name: "bench",
        options: bench::OPTIONS,
        says: "how fast the program is: all but `build`, or what is named; --write the page",
        run: bench::run,
    },
    Command {
        name: "field",
        options: field::OPTIONS,
        says: "agents at work on real projects, one of them from a registry",
        run: field::run,
    },
];

fn has(options: &[String], option: &str) -> bool {
    options.iter().any(|given| given == option)
}

fn usage() -> String {
    let mut text = String::from("usage: cargo xtask COMMAND [OPTION]\n");
    for command in COMMANDS {
        let call = format!("{} {}", command.name, command.options.join(" "));
        // What is too long for its column has a line to itself.
        let gap = if call.len() < 22 { String::new() } else { format!("\n  {:<22}", "") };
        let _ = write!(text, "\n  {call:<22}{gap}{}", command.says);
    }
    text
}

/// Finds the command and refuses what it does not know, so that a misspelt option is never ignored.
fn chosen(arguments: &[String]) -> std::result::Result<(&'static Command, &[String]), String> {
    let Some((name, options)) = arguments.split_first() else {
        return Err(usage());
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return Err(format!("xtask: unknown command `{name}`\n{}", usage()));
    };
    match options.iter().find(|option| !command.options.contains(&option.as_str())) {
        Some(option) => Err(format!("xtask: `{name}` does not know `{option}`\n{}", usage())),
        None => Ok((command, options)),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| matches!(first.as_str(), "help" | "--help" | "-h")) {
        println!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let (command, options) = match chosen(&arguments) {
        Ok(chosen) => chosen,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    let report = workspace::root().and_then(|root| (command.run)(&root, options));
    match report {
        Ok(report) => {
            report.print(command.name);
            if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("xtask {}: {error}", command.name);
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_misspelt_option_is_refused() {
        assert!(chosen(&words("rfc --wirte")).is_err());
        assert!(chosen(&words("layers --write")).is_err());
        assert!(chosen(&words("rfc --write")).is_ok());
    }

    #[test]
    fn an_unknown_command_is_answered_with_the_list() {
        let Err(text) = chosen(&words("lint")) else { panic!("accepted") };
        assert!(text.contains("unknown command `lint`") && text.contains("coverage"), "{text}");
    }
}
