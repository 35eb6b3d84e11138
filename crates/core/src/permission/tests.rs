//! The order in which a deed is judged.

use proptest::prelude::*;

use super::*;
use crate::rule::Pattern;

const NOTHING: &[Grant] = &[];

fn rule(effect: Effect, pattern: &str) -> Rule {
    Rule { effect, pattern: Pattern::parse(pattern).unwrap() }
}

fn authority<'a>(
    mode: Mode,
    grants: &'a [Grant],
    rules: Vec<(Bucket, &'a [Rule])>,
) -> Authority<'a> {
    Authority { mode, plan_ceiling: false, grants, rules }
}

fn edit(path: &str) -> Deed {
    Deed::Edit(path.to_owned())
}

fn command(line: &str) -> Deed {
    Deed::Command(line.to_owned())
}

fn modes() -> [Mode; 3] {
    [Mode::Ask, Mode::Edits, Mode::FullAuto]
}

#[test]
fn the_mode_decides_where_nothing_else_does() {
    let judge = |mode, deed: &Deed| authority(mode, NOTHING, vec![]).judge(deed, &[Zone::Root]);
    let (edit, command) = (edit("/w/a.rs"), command("make"));
    assert_eq!(modes().map(|m| judge(m, &edit)), [Verdict::Ask, Verdict::Allow, Verdict::Allow]);
    assert_eq!(modes().map(|m| judge(m, &command)), [Verdict::Ask, Verdict::Ask, Verdict::Allow]);
    let read = Deed::Read("/w/a.rs".to_owned());
    assert_eq!(judge(Mode::Ask, &read), Verdict::Allow);
    let foreign = Deed::Foreign { title: "x".to_owned() };
    assert_eq!(judge(Mode::Edits, &foreign), Verdict::Ask);
    assert_eq!(judge(Mode::FullAuto, &foreign), Verdict::Allow);
}

#[test]
fn agents_61_a_rule_that_denies_beats_mode_rules_and_grants() {
    let deeds = [
        (command("cd x && git push"), rule(Effect::Deny, "command:git push")),
        (edit("/w/.env"), rule(Effect::Deny, "edit:.env")),
        (Deed::Edits(vec!["/w/a".into(), "/w/.env".into()]), rule(Effect::Deny, "read:.env")),
        (Deed::Read("/w/.env".into()), rule(Effect::Deny, "read:/w/.env")),
    ];
    for (deed, deny) in deeds {
        let denied = [deny.clone()];
        let allow = [rule(Effect::Allow, "command:"), rule(Effect::Allow, "edit:**")];
        let grants = [deed.clone()];
        for bucket in [Bucket::Delegated, Bucket::Session, Bucket::Global] {
            for mode in modes() {
                let rules: Vec<(Bucket, &[Rule])> =
                    vec![(Bucket::Session, &allow), (bucket, &denied), (Bucket::Global, &allow)];
                let verdict = authority(mode, &grants, rules).judge(&deed, &[Zone::Root; 2]);
                assert_eq!(verdict, Verdict::Deny(deny.clone()));
            }
        }
    }
}

#[test]
fn agents_62_under_the_plan_ceiling_an_edit_is_planned_whole_or_not_at_all() {
    let allow = [rule(Effect::Allow, "command:"), rule(Effect::Allow, "edit:**")];
    let both = Deed::Edits(vec!["/plans/a.md".to_owned(), "/w/a.rs".to_owned()]);
    let grants = [both.clone(), command("make"), edit("/w/a.rs")];
    for mode in modes() {
        let mut authority = authority(mode, &grants, vec![(Bucket::Global, &allow)]);
        authority.plan_ceiling = true;
        let judge = |deed: &Deed, zones: &[Zone]| authority.judge(deed, zones);
        assert_eq!(judge(&both, &[Zone::Plan, Zone::Root]), Verdict::Forbid);
        assert_eq!(judge(&both, &[Zone::Plan]), Verdict::Forbid, "a zone that nobody named");
        assert_eq!(judge(&both, &[Zone::Plan, Zone::Plan]), Verdict::Allow);
        assert_eq!(judge(&edit("/w/a.rs"), &[Zone::Root]), Verdict::Forbid);
        assert_eq!(judge(&command("make"), &[]), Verdict::Forbid);
        assert_eq!(judge(&Deed::Edits(Vec::new()), &[]), Verdict::Forbid);
        let read = Deed::Read("/w/a.rs".to_owned());
        assert_eq!(judge(&read, &[Zone::Root]), Verdict::Allow);
    }
}

#[test]
fn agents_63_a_role_narrows_and_allows_only_what_changes_nothing() {
    let delegated = [
        rule(Effect::Allow, "command:"),
        rule(Effect::Allow, "edit:**"),
        rule(Effect::Ask, "command:make"),
    ];
    let judge = |mode, bucket, deed: &Deed| {
        authority(mode, NOTHING, vec![(bucket, &delegated[..2])]).judge(deed, &[Zone::Root])
    };
    for line in ["rm -rf build", "curl x | sh", "ls; rm x", "cargo test", "ls > x"] {
        assert_eq!(judge(Mode::Ask, Bucket::Delegated, &command(line)), Verdict::Ask, "{line}");
    }
    assert_eq!(judge(Mode::Ask, Bucket::Delegated, &edit("/w/a")), Verdict::Ask);
    assert_eq!(judge(Mode::Ask, Bucket::Delegated, &command("ls -la")), Verdict::Allow);
    // The person's own rules may.
    for bucket in [Bucket::Session, Bucket::Global] {
        assert_eq!(judge(Mode::Ask, bucket, &command("rm -rf build")), Verdict::Allow);
        assert_eq!(judge(Mode::Ask, bucket, &edit("/w/a")), Verdict::Allow);
    }
    let rules: Vec<(Bucket, &[Rule])> = vec![(Bucket::Delegated, &delegated)];
    let verdict = authority(Mode::FullAuto, NOTHING, rules).judge(&command("make all"), &[]);
    assert_eq!(verdict, Verdict::Ask, "a role narrows any mode");
}

#[test]
fn the_innermost_bucket_that_says_something_decides() {
    let ask = [rule(Effect::Ask, "command:cargo")];
    let allow = [rule(Effect::Allow, "command:cargo test")];
    let deed = command("cargo test --all");
    let judge = |rules| authority(Mode::Ask, NOTHING, rules).judge(&deed, &[]);
    assert_eq!(judge(vec![(Bucket::Session, &allow[..]), (Bucket::Global, &ask)]), Verdict::Allow);
    assert_eq!(judge(vec![(Bucket::Session, &ask[..]), (Bucket::Global, &allow)]), Verdict::Ask);
    let complex = command("cargo test; rm x");
    let rules: Vec<(Bucket, &[Rule])> = vec![(Bucket::Session, &allow)];
    assert_eq!(authority(Mode::Ask, NOTHING, rules).judge(&complex, &[]), Verdict::Ask);
}

#[test]
fn agents_56_a_place_outside_needs_an_exact_grant_in_every_mode() {
    let allow = [rule(Effect::Allow, "edit:**"), rule(Effect::Allow, "command:")];
    let there = edit("/wt/a.rs");
    let read = Deed::Read("/wt/a.rs".to_owned());
    for mode in modes() {
        let judge = |grants: &[Grant], deed: &Deed| {
            authority(mode, grants, vec![(Bucket::Session, &allow)]).judge(deed, &[Zone::Outside])
        };
        assert_eq!(judge(NOTHING, &there), Verdict::Ask);
        assert_eq!(judge(NOTHING, &read), Verdict::Ask);
        assert_eq!(judge(std::slice::from_ref(&there), &there), Verdict::Allow);
        assert_eq!(judge(std::slice::from_ref(&there), &read), Verdict::Allow, "write has read");
        assert_eq!(judge(std::slice::from_ref(&read), &there), Verdict::Ask);
        // Neither beside it nor below it, and no path by a command.
        for other in ["/wt/b.rs", "/wt/a.rs/x", "/wt"] {
            assert_eq!(judge(std::slice::from_ref(&there), &edit(other)), Verdict::Ask);
        }
        assert_eq!(judge(&[command("/wt/a.rs")], &there), Verdict::Ask);
    }
    let dir = |text: &str| AbsoluteDir::new(text).unwrap();
    assert!(may_confine(&dir("/w/app/sub"), &[dir("/w/app")]));
    assert!(!may_confine(&dir("/wt"), &[dir("/w/app")]));
    assert!(!may_confine(&dir("/w/app-old"), &[dir("/w/app")]));
}

#[test]
fn protected_paths_need_an_exact_grant_in_every_mode() {
    let mine = [rule(Effect::Inaccessible, "read:secrets"), rule(Effect::Allow, "edit:**")];
    let deeds = [
        (edit("/w/.git/config"), Verdict::Ask),
        (edit("/w/.GIT/config"), Verdict::Ask),
        (Deed::Read("/w/.git/config".to_owned()), Verdict::Allow),
        (Deed::Read("/w/.ssh/id".to_owned()), Verdict::Ask),
        (Deed::Read("/w/secrets/a".to_owned()), Verdict::Ask),
        (edit("/w/.gitignore"), Verdict::Allow),
    ];
    for (deed, expected) in deeds {
        let rules: Vec<(Bucket, &[Rule])> = vec![(Bucket::Global, &mine)];
        let judged = authority(Mode::FullAuto, NOTHING, rules.clone()).judge(&deed, &[Zone::Root]);
        assert_eq!(judged, expected, "{deed:?}");
        let grants = [deed.clone()];
        let granted = authority(Mode::Ask, &grants, rules).judge(&deed, &[Zone::Root]);
        assert_eq!(granted, Verdict::Allow);
    }
}

fn any_deed() -> impl Strategy<Value = Deed> {
    let file = || prop::sample::select(vec!["/w/a", "/w/.env", "/w/.git/x", "/o/b"]);
    prop_oneof![
        file().prop_map(edit),
        file().prop_map(|path| Deed::Read(path.to_owned())),
        prop::collection::vec(file().prop_map(str::to_owned), 0..3).prop_map(Deed::Edits),
        prop::sample::select(vec!["ls", "git push", "rm x; ls"]).prop_map(command),
    ]
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let effects =
        vec![Effect::Deny, Effect::Ask, Effect::Allow, Effect::ReadOnly, Effect::Inaccessible];
    let patterns = vec!["command:", "command:git", "edit:**", "edit:.env", "read:/w/a"];
    (prop::sample::select(effects), prop::sample::select(patterns))
        .prop_map(|(effect, pattern)| rule(effect, pattern))
}

fn strength(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Ask => 1,
        Verdict::Forbid | Verdict::Deny(_) => 2,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever a role's rules are: they make nothing possible that was not but commands that
    /// change nothing; and no deed of several files is easier than one of them.
    #[test]
    fn a_role_never_widens(
        deed in any_deed(),
        mine in prop::collection::vec(any_rule(), 0..4),
        roles in prop::collection::vec(any_rule(), 0..4),
        zones in prop::collection::vec(
            prop::sample::select(vec![Zone::Root, Zone::Plan, Zone::Outside]), 0..3),
        mode in prop::sample::select(modes().to_vec()),
        plan_ceiling in any::<bool>(),
    ) {
        let rules: Vec<(Bucket, &[Rule])> = vec![(Bucket::Session, &mine)];
        let without = Authority { mode, plan_ceiling, grants: NOTHING, rules };
        let mut with = without.clone();
        with.rules.insert(0, (Bucket::Delegated, &roles));
        let harmless = deed == command("ls");
        let (before, after) = (without.judge(&deed, &zones), with.judge(&deed, &zones));
        prop_assert!(harmless || strength(&after) >= strength(&before), "{before:?} {after:?}");
        if let Deed::Edits(paths) = &deed {
            for (path, zone) in paths.iter().zip(&zones) {
                let one = with.judge(&edit(path), &[*zone]);
                prop_assert!(strength(&after) >= strength(&one));
            }
        }
    }
}
