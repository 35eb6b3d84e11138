//! `search`: lines that match a regular expression.

use std::io;
use std::path::Path;
use std::sync::Arc;

use globset::{Glob, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use serde_json::json;
use stead_core::refusal::{Refusal, RefusalKind};
use tokio_util::sync::CancellationToken;

use super::arguments::SearchArguments;
use super::authority::{Found, Sight};
use super::list::{Closed, check_there, walk};
use super::output::{Output, head};

const USUAL_MATCHES: u64 = 200;
/// The most bytes of one line that are shown.
const LONGEST_LINE: usize = 500;
/// The most bytes of one answer.
const LARGEST_ANSWER: usize = 256 * 1024;
/// The longest line that is held in memory; files with longer ones are skipped and counted.
const LARGEST_LINE: usize = 16 * 1024 * 1024;

/// Searches a file or a folder.
pub(crate) fn search(
    sight: &Arc<Sight>,
    found: &Found,
    arguments: &SearchArguments,
    cancel: &CancellationToken,
) -> Result<Output, Refusal> {
    let matcher = matcher(arguments)?;
    let glob = arguments.glob.as_deref().map(glob).transpose()?;
    check_there(found)?;
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LARGEST_LINE))
        .build();
    let limit = usize::try_from(arguments.limit.unwrap_or(USUAL_MATCHES)).unwrap_or(usize::MAX);
    let mut matches = Matches { limit, lines: Vec::new(), bytes: 0, full: false, cancel };
    let (mut files, mut unread, mut closed_files) = (0_u64, 0_u64, 0_usize);
    let closed = Closed::default();
    for entry in walk(&found.real, sight.clone(), &closed).build() {
        if cancel.is_cancelled() || matches.full {
            break;
        }
        let Ok(entry) = entry else {
            unread += 1;
            continue;
        };
        // Only what is a regular file itself: a link may lead out, a pipe may never end.
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let below = entry.path().strip_prefix(&found.real).unwrap_or(entry.path());
        let named = if below.as_os_str().is_empty() { entry.path() } else { below };
        if glob.as_ref().is_some_and(|glob| !matching(glob, named)) {
            continue;
        }
        if entry.depth() > 0 && !sight.may_read(entry.path()) {
            closed_files += 1;
            continue;
        }
        files += 1;
        if one(sight, &mut searcher, &matcher, entry.path(), &mut matches).is_err() {
            unread += 1;
        }
    }
    let count = matches.lines.len();
    let mut lines = matches.lines;
    let mut notes = Vec::new();
    if matches.full {
        notes.push(format!("only the first {count} matches; narrow it with path or glob"));
    }
    if count == 0 {
        notes.push(format!("no match in {files} files below {}", found.shown));
    }
    if unread > 0 {
        notes.push(format!("{unread} files or folders could not be read"));
    }
    let closed = closed_files + closed.count();
    if closed > 0 {
        notes.push(format!("{closed} files or folders need leave of their own to be read"));
    }
    if !notes.is_empty() {
        lines.push(format!("[stead: {}]", notes.join("; ")));
    }
    let structured =
        json!({ "path": found.shown, "matches": count, "files": files, "more": matches.full });
    Ok(Output::new(lines.join("\n"), structured))
}

fn one(
    sight: &Sight,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    path: &Path,
    matches: &mut Matches<'_>,
) -> Result<(), Refusal> {
    let found = sight.found(path);
    let file = found.open()?;
    let sink = Lines { matches, shown: &found.shown };
    searcher
        .search_file(matcher, &file, sink)
        .map_err(|error| Refusal::new(RefusalKind::Failed, error.to_string()))
}

fn matcher(arguments: &SearchArguments) -> Result<RegexMatcher, Refusal> {
    let literal = arguments.literal.unwrap_or(false);
    // The flag lets `$` match before CRLF; the builder's own switch for it asks the searcher for a
    // line terminator that files with LF do not have.
    let flag = if literal { "" } else { "(?R)" };
    RegexMatcherBuilder::new()
        .multi_line(true)
        .case_insensitive(arguments.ignore_case.unwrap_or(false))
        .fixed_strings(literal)
        .line_terminator(Some(b'\n'))
        .build(&format!("{flag}{}", arguments.pattern))
        .map_err(|error| {
            let reason = error.to_string();
            Refusal::new(
                RefusalKind::InvalidArgument,
                format!("field `pattern` of `search`: {}", head(&reason, 500)),
            )
            .hint("a pattern matches within one line; set `literal` to search plain text")
        })
}

fn glob(text: &str) -> Result<GlobMatcher, Refusal> {
    let compiled = Glob::new(text).map_err(|error| {
        let reason = error.kind().to_string();
        Refusal::new(RefusalKind::InvalidArgument, format!("field `glob` of `search`: {reason}"))
            .hint("as in `*.rs` or `src/**/*.toml`")
    })?;
    Ok(compiled.compile_matcher())
}

/// A glob without a slash is about the name, as in `.gitignore`.
fn matching(glob: &GlobMatcher, below: &Path) -> bool {
    match below.file_name() {
        Some(name) if !glob.glob().glob().contains('/') => glob.is_match(name),
        _ => glob.is_match(below),
    }
}

struct Matches<'a> {
    limit: usize,
    lines: Vec<String>,
    bytes: usize,
    full: bool,
    cancel: &'a CancellationToken,
}

struct Lines<'a, 'b> {
    matches: &'a mut Matches<'b>,
    shown: &'a str,
}

impl Sink for Lines<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let matches = &mut *self.matches;
        if matches.lines.len() >= matches.limit || matches.bytes >= LARGEST_ANSWER {
            matches.full = true;
            return Ok(false);
        }
        let text = String::from_utf8_lossy(found.bytes());
        let text = text.trim_end_matches(['\r', '\n']);
        let cut = head(text, LONGEST_LINE);
        let dots = if cut.len() < text.len() { "…" } else { "" };
        let number = found.line_number().unwrap_or_default();
        let line = format!("{}:{number}:{cut}{dots}", self.shown);
        matches.bytes += line.len();
        matches.lines.push(line);
        Ok(!matches.cancel.is_cancelled())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use stead_core::layout::Access;

    use super::*;
    use crate::tools::authority::Authority;

    #[test]
    fn matches_are_found_bounded_and_never_outside() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("root");
        fs::create_dir_all(base.join("src")).unwrap();
        let outside = folder.path().join("outside");
        fs::write(&outside, "needle outside").unwrap();
        symlink(&outside, base.join("link")).unwrap();
        symlink(folder.path(), base.join("up")).unwrap();
        for (name, content) in [
            ("a.rs", "one\nneedle two\r\n"),
            ("src/b.toml", "Needle = 1\n"),
            ("bin", "needle\0"),
            ("skipped.log", "needle"),
            (".gitignore", "*.log"),
        ] {
            fs::write(base.join(name), content).unwrap();
        }
        let root = std::iter::once((base.as_path(), Access::Read));
        let authority = Authority::new(&base, root, None);
        let call = |change: &dyn Fn(&mut SearchArguments)| {
            let mut arguments = SearchArguments {
                pattern: "needle".into(),
                path: None,
                glob: None,
                literal: None,
                ignore_case: None,
                limit: None,
            };
            change(&mut arguments);
            let found = authority.reading(arguments.path.as_deref().unwrap_or("."))?;
            let terms = crate::tools::list::tests::everything();
            let sight = Arc::new(Sight { authority: Arc::new(authority.clone()), terms });
            search(&sight, &found, &arguments, &CancellationToken::new())
        };
        assert_eq!(call(&|_| {}).unwrap().text, "a.rs:2:needle two");
        let both = call(&|a| a.ignore_case = Some(true)).unwrap().text;
        assert_eq!(both, "a.rs:2:needle two\nsrc/b.toml:1:Needle = 1");
        let toml = call(&|a| {
            a.ignore_case = Some(true);
            a.glob = Some("*.toml".into());
        });
        assert_eq!(toml.unwrap().text, "src/b.toml:1:Needle = 1");
        assert_eq!(call(&|a| a.path = Some("a.rs".into())).unwrap().text, "a.rs:2:needle two");
        assert_eq!(call(&|a| a.pattern = "two$".into()).unwrap().text, "a.rs:2:needle two");
        let refusal = call(&|a| a.pattern = "ne(".into()).unwrap_err();
        assert!(refusal.line.contains("`pattern`"), "{refusal}");
        assert!(call(&|a| a.pattern = "a\nb".into()).is_err());
        assert!(call(&|a| a.glob = Some("[".into())).unwrap_err().line.contains("`glob`"));
        let up = call(&|a| a.path = Some("up".into())).unwrap().text;
        assert!(
            !up.contains("needle outside") && up.contains("1 files or folders need leave"),
            "{up}"
        );
        let none = call(&|a| {
            a.pattern = "ne(".into();
            a.literal = Some(true);
        });
        assert!(none.unwrap().text.starts_with("[stead: no match in "));
        fs::write(base.join("many"), format!("needle{}\n", "内".repeat(900)).repeat(300)).unwrap();
        let many = call(&|a| a.path = Some("many".into())).unwrap();
        assert!(many.text.contains("only the first 200 matches") && many.text.contains('…'));
    }
}
