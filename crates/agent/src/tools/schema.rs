//! Schemas of arguments: made from the argument types, and the judge of every value.
//!
//! A value is checked against the very schema that the model was shown, so the two can never
//! disagree, and the refusal names the field. Only the few keywords that the catalogue uses are
//! understood; a test holds the catalogue to them.

use std::collections::BTreeSet;

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

/// Checks `value` and gives it back with optional `null`s dropped and integral floats made
/// integers.
pub(super) fn check(tool: &str, schema: &Value, value: &Value) -> Result<Value, Refusal> {
    if !value.is_object() {
        return Err(invalid(format!(
            "the arguments of `{tool}` must be an object, not {}",
            kind_of(value)
        ))
        .hint(format!("its fields: {}", fields(schema))));
    }
    checked(tool, "", schema, value)
}

fn checked(tool: &str, at: &str, schema: &Value, value: &Value) -> Result<Value, Refusal> {
    let types = types(schema);
    let fits = |t: &&str| match *t {
        "integer" => integer(value).is_some(),
        other => kind_of(value).ends_with(other),
    };
    if !types.is_empty() && !types.iter().any(fits) {
        let wanted = expected(schema, &types);
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
        Value::Object(map) => object(tool, at, schema, map).map(Value::Object),
        Value::Array(items) => array(tool, at, schema, items).map(Value::Array),
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
            Ok(value.clone())
        }
        Value::Number(number) => {
            let bound = |key| schema.get(key).and_then(Value::as_f64);
            let given = number.as_f64().unwrap_or(f64::NAN);
            let low = bound("minimum").is_some_and(|least| given < least);
            let high = bound("maximum").is_some_and(|most| given > most);
            if low || high {
                let wanted = expected(schema, &types);
                return Err(invalid(format!("field `{at}` of `{tool}` must be {wanted}")));
            }
            let whole = types.contains(&"integer").then(|| integer(value)).flatten();
            Ok(whole.map_or_else(|| value.clone(), Value::Number))
        }
        Value::Null | Value::Bool(_) => Ok(value.clone()),
    }
}

fn object(
    tool: &str,
    at: &str,
    schema: &Value,
    map: &Map<String, Value>,
) -> Result<Map<String, Value>, Refusal> {
    let empty = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let whole = if at.is_empty() { format!("`{tool}`") } else { format!("`{at}` of `{tool}`") };
    let mut result = Map::new();
    for (name, value) in map {
        let Some(schema) = known.get(name) else {
            let short: String = name.chars().take(80).collect();
            let refusal = invalid(format!("{whole} has no field `{}`", short.escape_debug()));
            let near = nearest(&short, known.keys().map(String::as_str));
            let near = near.map(|n| format!("did you mean `{n}`? ")).unwrap_or_default();
            return Err(refusal.hint(format!("{near}its fields: {}", fields(schema))));
        };
        let below = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        let value = checked(tool, &below, schema, value)?;
        if !value.is_null() {
            result.insert(name.clone(), value);
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    let missing: Vec<_> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| !result.contains_key(*name))
        .map(|name| format!("`{name}`"))
        .collect();
    if missing.is_empty() {
        return Ok(result);
    }
    Err(invalid(format!("{whole} needs the field {}", missing.join(" and ")))
        .hint(format!("its fields: {}", fields(schema))))
}

fn array(tool: &str, at: &str, schema: &Value, items: &[Value]) -> Result<Vec<Value>, Refusal> {
    let most = schema.get("maxItems").and_then(Value::as_u64).and_then(|n| n.try_into().ok());
    if let Some(most) = most
        && items.len() > most
    {
        let count = items.len();
        return Err(invalid(format!(
            "field `{at}` of `{tool}` has {count} elements; at most {most} are allowed"
        )));
    }
    let Some(each) = schema.get("items") else { return Ok(items.to_vec()) };
    items
        .iter()
        .enumerate()
        .map(|(number, item)| checked(tool, &format!("{at}[{number}]"), each, item))
        .collect()
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
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

fn expected(schema: &Value, types: &[&str]) -> String {
    let names: Vec<String> = types
        .iter()
        .filter(|t| **t != "null")
        .map(|t| match *t {
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
