//! Schemas of arguments: made from the argument types, and the judge of every value.
//!
//! A value is checked against the very schema that the model was shown, so the two can never
//! disagree, and the refusal names the field. Only the few keywords that the catalogue uses are
//! understood; a test holds the catalogue to them.

use std::collections::BTreeSet;
use std::fmt;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Number, Value};
use stead_core::refusal::{Refusal, RefusalKind};

/// The schema of an argument type, without titles and formats that tell a model nothing.
pub(super) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let plain = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("title");
        schema.remove("format");
    });
    let mut schema = settings.with_transform(plain).into_generator().into_root_schema_for::<T>();
    // A type's own comment is for readers of the code; the tool's description is the model's.
    schema.remove("description");
    schema.to_value()
}

/// Where in the arguments a value stands; a text only once somebody has to be told.
#[derive(Clone, Copy)]
enum At<'a> {
    Top,
    Field(&'a At<'a>, &'a str),
    Item(&'a At<'a>, usize),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => Ok(()),
            Self::Field(Self::Top, name) => f.write_str(name),
            Self::Field(above, name) => write!(f, "{above}.{name}"),
            Self::Item(above, number) => write!(f, "{above}[{number}]"),
        }
    }
}

/// Checks `value`, drops optional `null`s from it and makes integral floats integers.
pub(super) fn check(tool: &str, schema: &Value, value: &mut Value) -> Result<(), Refusal> {
    if !value.is_object() {
        return Err(invalid(format!(
            "the arguments of `{tool}` must be an object, not {}",
            kind_of(value)
        ))
        .hint(format!("its fields: {}", fields(schema))));
    }
    checked(tool, At::Top, schema, value)
}

fn checked(tool: &str, at: At<'_>, schema: &Value, value: &mut Value) -> Result<(), Refusal> {
    let fits = |t: &str| match t {
        "integer" => integer(value).is_some(),
        other => kind_of(value).ends_with(other),
    };
    let mut types = types(schema).peekable();
    if types.peek().is_some() && !types.any(fits) {
        let wanted = expected(schema);
        return Err(invalid(format!(
            "field `{at}` of `{tool}` must be {wanted}, not {}",
            kind_of(value)
        )));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let names: Vec<_> = allowed.iter().filter_map(Value::as_str).collect();
        return Err(invalid(format!(
            "field `{at}` of `{tool}` must be one of: {}",
            names.join(", ")
        )));
    }
    match value {
        Value::Object(map) => object(tool, at, schema, map),
        Value::Array(items) => array(tool, at, schema, items),
        Value::String(text) => {
            let count = text.chars().count();
            let limit =
                |key| schema.get(key).and_then(Value::as_u64).and_then(|n| n.try_into().ok());
            if let Some(most) = limit("maxLength")
                && count > most
            {
                return Err(invalid(format!(
                    "field `{at}` of `{tool}` has {count} characters; at most {most} are allowed"
                )));
            }
            if limit("minLength").is_some_and(|least: usize| count < least) {
                return Err(invalid(format!("field `{at}` of `{tool}` may not be empty")));
            }
            Ok(())
        }
        Value::Number(number) => {
            let bound = |key| schema.get(key).and_then(Value::as_f64);
            let given = number.as_f64().unwrap_or(f64::NAN);
            let low = bound("minimum").is_some_and(|least| given < least);
            let high = bound("maximum").is_some_and(|most| given > most);
            if low || high {
                let wanted = expected(schema);
                return Err(invalid(format!("field `{at}` of `{tool}` must be {wanted}")));
            }
            if self::types(schema).any(|t| t == "integer")
                && let Some(whole) = integer(value)
            {
                *value = Value::Number(whole);
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) => Ok(()),
    }
}

fn object(
    tool: &str,
    at: At<'_>,
    schema: &Value,
    map: &mut Map<String, Value>,
) -> Result<(), Refusal> {
    let empty = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let whole = || match at {
        At::Top => format!("`{tool}`"),
        at => format!("`{at}` of `{tool}`"),
    };
    for (name, value) in map.iter_mut() {
        let Some(schema) = known.get(name) else {
            let short: String = name.chars().take(80).collect();
            let refusal = invalid(format!("{} has no field `{}`", whole(), short.escape_debug()));
            let near = nearest(&short, known.keys().map(String::as_str));
            let near = near.map(|n| format!("did you mean `{n}`? ")).unwrap_or_default();
            return Err(refusal.hint(format!("{near}its fields: {}", fields(schema))));
        };
        checked(tool, At::Field(&at, name), schema, value)?;
    }
    map.retain(|_, value| !value.is_null());
    let required = schema.get("required").and_then(Value::as_array);
    let missing: Vec<_> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| !map.contains_key(*name))
        .map(|name| format!("`{name}`"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(invalid(format!("{} needs the field {}", whole(), missing.join(" and ")))
        .hint(format!("its fields: {}", fields(schema))))
}

fn array(tool: &str, at: At<'_>, schema: &Value, items: &mut [Value]) -> Result<(), Refusal> {
    let most = schema.get("maxItems").and_then(Value::as_u64).and_then(|n| n.try_into().ok());
    if let Some(most) = most
        && items.len() > most
    {
        let count = items.len();
        return Err(invalid(format!(
            "field `{at}` of `{tool}` has {count} elements; at most {most} are allowed"
        )));
    }
    let Some(each) = schema.get("items") else { return Ok(()) };
    let mut items = items.iter_mut().enumerate();
    items.try_for_each(|(number, item)| checked(tool, At::Item(&at, number), each, item))
}

fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let types = match schema.get("type") {
        Some(Value::Array(several)) => several.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    types.iter().filter_map(Value::as_str)
}

/// JSON Schema calls 3.0 an integer, and some models write it.
fn integer(value: &Value) -> Option<Number> {
    let number = value.as_number()?;
    if number.is_i64() || number.is_u64() {
        return Some(number.clone());
    }
    let float = number.as_f64().filter(|f| f.fract() == 0.0)?;
    // Beyond 64 bits it stays what it is; the range then refuses it.
    let text = format!("{float:.0}");
    let whole =
        text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
    Some(whole.unwrap_or_else(|_| number.clone()))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn expected(schema: &Value) -> String {
    let names: Vec<String> = types(schema)
        .filter(|t| *t != "null")
        .map(|t| match t {
            "integer" | "array" | "object" => format!("an {t}"),
            other => format!("a {other}"),
        })
        .collect();
    let names = names.join(" or ");
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(least), Some(most)) => format!("{names} from {least} to {most}"),
        _ => names,
    }
}

fn fields(schema: &Value) -> String {
    let required: BTreeSet<_> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let names: Vec<_> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys)
        .map(|name| {
            if required.contains(name.as_str()) {
                name.clone()
            } else {
                format!("{name} (optional)")
            }
        })
        .collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The known name that is closest to `given`, if one is close at all.
pub(super) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::jaro_winkler(given, name), name))
        .filter(|(likeness, _)| *likeness >= 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

pub(super) fn invalid(line: String) -> Refusal {
    Refusal::new(RefusalKind::InvalidArgument, line)
}
