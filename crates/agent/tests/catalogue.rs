//! The catalogue: its schemas, and that no argument whatever breaks a tool.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // the helpers of tests are not exempt by themselves

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use stead_agent::SessionTool;
use stead_agent::tools::{BashCall, Tool, ToolCallParsed, catalogue};
use stead_core::refusal::RefusalKind;
use stead_core::shell::ShellId;
use stead_core::task::{Owner, Status};

fn refusal(tool: &str, arguments: Value) -> String {
    Tool::parse(tool, arguments).unwrap_err().to_string()
}

fn walk(place: &str, schema: &Value, known: &BTreeSet<&str>) {
    let map = schema.as_object().unwrap();
    for word in map.keys() {
        assert!(known.contains(word.as_str()), "{place}: {word} is not understood");
    }
    let types: Vec<_> = match &map["type"] {
        Value::Array(types) => types.iter().map(|t| t.as_str().unwrap()).collect(),
        one => vec![one.as_str().unwrap()],
    };
    if types.contains(&"object") {
        assert_eq!(map["additionalProperties"], false, "{place}");
        for (name, schema) in map.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            assert!(schema.get("description").is_some(), "{place}.{name} is not described");
            walk(&format!("{place}.{name}"), schema, known);
        }
    }
    if types.contains(&"string") && !map.contains_key("enum") {
        assert!(map.contains_key("maxLength"), "{place} is not bounded");
    }
    if types.contains(&"integer") {
        assert!(map.contains_key("minimum") && map.contains_key("maximum"), "{place}");
    }
    if types.contains(&"array") {
        assert!(map.contains_key("maxItems"), "{place} is not bounded");
        walk(&format!("{place}[]"), &map["items"], known);
    }
}

#[test]
fn every_schema_is_closed_bounded_and_made_of_known_words() {
    let known: BTreeSet<&str> = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "description",
        "enum",
        "items",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "maxItems",
    ]
    .into();
    for tool in catalogue() {
        walk(tool.name, &tool.schema, &known);
        jsonschema::meta::validate(&tool.schema).unwrap();
        assert!(!tool.description.is_empty());
    }
    let names: Vec<_> = catalogue().iter().map(|tool| tool.name).collect();
    assert_eq!(
        names.join(" "),
        "read write edit list search bash exec release agent send_message wait_agent read_result list_agents \
         interrupt_agent task_write propose_task task_list"
    );
}

#[test]
fn refusals_name_the_field_and_what_may_stand_there() {
    for (tool, arguments, says) in [
        (
            "wait_agnet",
            json!({}),
            "there is no tool `wait_agnet`\nhint: did you mean `wait_agent`? the tools: read,",
        ),
        ("read", json!({ "path": 5 }), "field `path` of `read` must be a string, not a number"),
        (
            "read",
            json!({ "pth": "x" }),
            "`read` has no field `pth`\nhint: did you mean `path`? its fields:",
        ),
        (
            "read",
            json!({}),
            "`read` needs the field `path`\nhint: its fields: limit (optional), offset (optional), path",
        ),
        (
            "read",
            json!({ "path": "x", "offset": 0 }),
            "field `offset` of `read` must be an integer from 1 to 1000000000",
        ),
        (
            "read",
            json!({ "path": "x", "offset": 1.5 }),
            "must be an integer from 1 to 1000000000, not a number",
        ),
        ("read", json!({ "path": "x", "limit": 1e300 }), "must be an integer from 1 to 100000"),
        (
            "read",
            json!({ "path": "x".repeat(5000) }),
            "field `path` of `read` has 5000 characters; at most 4096 are allowed",
        ),
        ("read", json!({ "path": "a\0b" }), "field `path` of `read` may not hold a NUL"),
        ("write", json!({ "path": "", "content": "" }), "field `path` of `write` may not be empty"),
        (
            "edit",
            json!({ "path": "a", "old": "x", "new": "x" }),
            "fields `old` and `new` of `edit` are equal",
        ),
        ("list", json!([]), "the arguments of `list` must be an object, not an array"),
        ("bash", json!({}), "`bash` needs either the field `command` or the field `shell`"),
        ("bash", json!({ "command": "x", "shell": 1 }), "needs either"),
        (
            "bash",
            json!({ "command": "x", "stop": true }),
            "field `stop` of `bash` goes with `shell`",
        ),
        (
            "bash",
            json!({ "shell": 1, "timeout_ms": 5 }),
            "field `timeout_ms` of `bash` goes with `command`",
        ),
        (
            "bash",
            json!({ "command": "é".repeat(90_000) }),
            "field `command` of `bash` has 180000 bytes",
        ),
        (
            "bash",
            json!({ "command": "x", "timeout_ms": 600_001 }),
            "must be an integer from 1 to 600000",
        ),
        (
            "agent",
            json!({ "task_name": "a", "message": "b", "ground": "x" }),
            "`agent` has no field `ground`",
        ),
        (
            "send_message",
            json!({ "target": "a", "message": "" }),
            "field `message` of `send_message` may not be empty",
        ),
        (
            "wait_agent",
            json!({ "timeout_ms": [1] }),
            "field `timeout_ms` of `wait_agent` must be a number or a string, not an array",
        ),
        (
            "task_write",
            json!({ "tasks": [{ "subject": "a" }, { "status": "done" }] }),
            "field `tasks[1].status` of `task_write` must be one of: pending, in_progress, completed",
        ),
        (
            "task_write",
            json!({ "tasks": [{ "id": 1, "owner": "/rot" }] }),
            "field `tasks[0].owner` of `task_write`: \"/rot\" does not begin with /root",
        ),
        (
            "task_write",
            json!({ "tasks": [{ "status": "completed" }] }),
            "a new task needs the field `tasks[0].subject`",
        ),
        (
            "task_write",
            json!({ "tasks": [{ "sbject": "x" }] }),
            "`tasks[0]` of `task_write` has no field `sbject`\nhint: did you mean `subject`?",
        ),
        ("task_write", json!({ "tasks": [] }), "needs at least one task or note"),
        ("task_list", json!({ "x": 1 }), "`task_list` has no field `x`\nhint: its fields: none"),
    ] {
        let refusal = refusal(tool, arguments);
        assert!(refusal.contains(says), "{tool}: {refusal}");
        assert!(refusal.len() < 1000);
    }
}

#[test]
fn good_calls_are_read() {
    let parse = |tool, arguments| Tool::parse(tool, arguments).unwrap();
    let ToolCallParsed::Read(read) =
        parse("read", json!({ "path": "x", "offset": 3.0, "limit": null }))
    else {
        panic!()
    };
    assert_eq!((read.offset, read.limit), (Some(3), None));
    assert_eq!(
        parse("bash", json!({ "shell": 2, "stop": true })),
        ToolCallParsed::Bash(BashCall::Stop(ShellId(2)))
    );
    for (given, timeout_ms) in [
        (json!(5000), Some(5000)),
        (json!("20000"), Some(20000)),
        (json!(" 2e4 "), Some(20000)),
        (json!(30000.0), Some(30000)),
        (json!(-1), Some(0)),
        (json!("-1"), Some(0)),
        (json!(1e300), Some(u64::MAX)),
        (json!(1.5), None),
        (json!("soon"), None),
        (json!(""), None),
        (json!("NaN"), None),
        (json!(null), None),
    ] {
        let parsed = parse("wait_agent", json!({ "timeout_ms": given }));
        assert_eq!(parsed, ToolCallParsed::Session(SessionTool::Wait { timeout_ms }), "{given}");
    }
    assert_eq!(
        parse("wait_agent", json!({})),
        ToolCallParsed::Session(SessionTool::Wait { timeout_ms: None })
    );
    let ToolCallParsed::Session(SessionTool::WriteTasks { tasks, notes }) = parse(
        "task_write",
        json!({
            "tasks": [{ "subject": "a", "owner": "", "blocked_by": [2, 1] }, { "id": 4, "status": "in_progress" }],
            "notes": [{ "note": "" }, { "owner": "ui", "note": "late" }],
        }),
    ) else {
        panic!()
    };
    assert_eq!((tasks[0].owner.clone(), tasks[1].owner.clone()), (Some(Owner::Main), None));
    assert_eq!(tasks[1].status, Some(Status::InProgress));
    assert_eq!(notes, [(None, String::new()), (Some("ui".into()), "late".into())]);
}

#[test]
fn nothing_of_a_hostile_argument_comes_back_unbounded_or_raw() {
    // As deep as a text that serde_json reads can be.
    let deep = (0..126).fold(json!(1), |inner, _| json!([inner]));
    let long = "x".repeat(1_000_000);
    for tool in catalogue() {
        for arguments in [
            json!({ "path": deep, "command": deep, "target": deep, "tasks": deep }),
            json!({ long.clone(): 1 }),
            json!({ "\u{1b}[2J\n": 1 }),
            json!({ "tasks": vec![json!({}); 300] }),
            json!(1e308),
            json!(null),
        ] {
            let refusal = Tool::parse(tool.name, arguments.clone()).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::InvalidArgument);
            assert!(refusal.to_string().len() < 1000);
            assert!(!refusal.line.contains(char::is_control), "{}", refusal.line);
        }
    }
    assert!(refusal(&long, json!({})).len() < 1000);
}

/// Any JSON, with the fields of the catalogue more often than others.
fn any_json() -> impl Strategy<Value = Value> {
    let fields: BTreeSet<String> = catalogue()
        .iter()
        .flat_map(|tool| tool.schema["properties"].as_object().cloned().unwrap_or_default())
        .map(|(name, _)| name)
        .chain(["id", "subject", "status", "owner", "note", "x"].map(Into::into))
        .collect();
    let field = prop::sample::select(fields.into_iter().collect::<Vec<_>>());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_i64..5).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        Just(json!("pending")),
        Just(json!("a\0b")),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(field.clone(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Values that a schema allows, made from the schema itself.
fn valid(schema: &Value) -> BoxedStrategy<Value> {
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let number = |word: &str| schema[word].as_u64();
    let of = |kind: &str| match kind {
        "null" => Just(Value::Null).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "number" => any::<f64>().prop_map(Value::from).boxed(),
        "integer" => {
            (number("minimum").unwrap()..=number("maximum").unwrap()).prop_map(Value::from).boxed()
        }
        "string" if schema["enum"].is_array() => {
            prop::sample::select(schema["enum"].as_array().unwrap().clone()).boxed()
        }
        "string" => {
            let most = usize::try_from(number("maxLength").unwrap().min(20)).unwrap();
            let least = usize::try_from(number("minLength").unwrap_or(0)).unwrap();
            prop::collection::vec("\\PC", least..=most)
                .prop_map(|characters| Value::from(characters.concat()))
                .boxed()
        }
        "array" => {
            prop::collection::vec(valid(&schema["items"]), 0..3).prop_map(Value::from).boxed()
        }
        "object" => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let fields = schema["properties"].as_object().cloned().unwrap_or_default();
            fields
                .into_iter()
                .map(|(name, schema)| {
                    let needed = required.contains(&json!(name));
                    (
                        Just(name),
                        valid(&schema),
                        any::<bool>().prop_map(move |there| there || needed),
                    )
                })
                .collect::<Vec<_>>()
                .prop_map(|fields| {
                    let there = fields.into_iter().filter(|(.., there)| *there);
                    Value::Object(there.map(|(name, value, _)| (name, value)).collect())
                })
                .boxed()
        }
        other => panic!("{other}"),
    };
    let kinds: Vec<_> = types.iter().map(|kind| of(kind.as_str().unwrap())).collect();
    prop::strategy::Union::new(kinds).boxed()
}

/// What the parser asks for beyond the schema; each has a test of its own above.
const RULES: [&str; 12] = [
    "is not a context",
    "are equal",
    "goes with `shell`",
    "goes with `command`",
    "needs either the field",
    "needs at least one task or note",
    "a new task needs the field",
    ".owner` of `task_write`: ",
    "may not hold a NUL",
    "`workspace_set.primary` names no slot",
    ".slot`: ",
    ".source_uri` is needed",
];

#[test]
fn copies_36_a_layout_that_names_no_primary_widens_or_lands_is_refused() {
    let propose = |change: &dyn Fn(&mut Value)| {
        let mut arguments = json!({
            "title": "Fix it", "brief": "Repair the parser.",
            "workspace_set": {"primary": "app", "roots": [
                {"source": "/w/lib", "slot": "lib", "access": "read"},
                {"source_uri": "stead-root:1", "slot": "app", "access": "write"},
            ]},
        });
        change(&mut arguments);
        Tool::parse("propose_task", arguments)
    };
    let Ok(ToolCallParsed::Session(SessionTool::Propose(proposal))) = propose(&|_| {}) else {
        panic!("a sound layout is refused")
    };
    let slots: Vec<_> = proposal.layout.unwrap().into_iter().map(|r| r.slot.to_string()).collect();
    assert_eq!(slots, ["app", "lib"], "the primary comes first");
    let refused = |named: &str, change: &dyn Fn(&mut Value)| {
        let refusal = propose(change).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::InvalidArgument);
        assert!(refusal.to_string().contains(named), "{named}: {refusal}");
    };
    let set = "workspace_set";
    refused("names no slot", &|a| a[set]["primary"] = json!("other"));
    refused("access", &|a| a[set]["roots"][0]["access"] = json!("Write"));
    refused("roots[1].slot", &|a| a[set]["roots"][1]["slot"] = json!("../x"));
    refused("ground", &|a| a["ground"] = json!("/w"));
    refused("where", &|a| a[set]["where"] = json!("/w"));
    refused("landing", &|a| a["landing"] = json!(true));
    refused("landing", &|a| a[set]["roots"][1]["landing"] = json!(true));
    refused("source", &|a| a[set]["roots"][0]["source_uri"] = json!("stead-root:2"));
    refused("source", &|a| a[set]["roots"][1]["source_uri"] = Value::Null);
    refused("NUL", &|a| a[set]["roots"][0]["source"] = json!("/w\0"));
}

#[test]
fn agents_20_context_is_one_word_for_both_ways_to_spawn() {
    let spawns = [
        ("agent", json!({ "task_name": "a", "message": "m" })),
        ("propose_task", json!({ "title": "a", "brief": "m" })),
    ];
    for (tool, arguments) in spawns {
        let parse = |context: &str| {
            let mut arguments = arguments.clone();
            arguments["context"] = json!(context);
            Tool::parse(tool, arguments)
        };
        for good in ["none", "all", "summary", "3"] {
            assert!(parse(good).is_ok(), "{tool} {good}");
        }
        for bad in ["0", "03", "ALL", "the parser"] {
            let refusal = parse(bad).unwrap_err();
            assert!(refusal.line.contains("is not a context"), "{refusal}");
            assert!(refusal.line.contains(&format!("`context` of `{tool}`")), "{refusal}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..Default::default() })]

    #[test]
    fn what_the_schema_refuses_the_parser_refuses(arguments in any_json()) {
        for tool in catalogue() {
            let fits = jsonschema::validator_for(&tool.schema).unwrap().is_valid(&arguments);
            match Tool::parse(tool.name, arguments.clone()) {
                Ok(_) => prop_assert!(fits, "{}: {arguments}", tool.name),
                Err(refusal) => {
                    prop_assert_eq!(refusal.kind, RefusalKind::InvalidArgument);
                    let rule = RULES.iter().any(|rule| refusal.line.contains(rule));
                    prop_assert!(!fits || rule, "{}: {arguments}: {refusal}", tool.name);
                }
            }
        }
    }

    #[test]
    fn what_the_schema_allows_the_parser_reads(
        (number, arguments) in (0..catalogue().len())
            .prop_flat_map(|number| (Just(number), valid(&catalogue()[number].schema))),
    ) {
        let tool = &catalogue()[number];
        prop_assert!(jsonschema::validator_for(&tool.schema).unwrap().is_valid(&arguments));
        if let Err(refusal) = Tool::parse(tool.name, arguments.clone()) {
            let rule = RULES.iter().any(|rule| refusal.line.contains(rule));
            prop_assert!(rule, "{}: {arguments}: {refusal}", tool.name);
        }
    }
}
