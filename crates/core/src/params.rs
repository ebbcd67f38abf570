//! The parameters of a call, read so strictly that one hash stands for one call.
//!
//! RFC 8785 canonical JSON gives every JSON object one spelling. But JSON itself is loose: keys may repeat, integers may
//! be too large for the doubles that RFC 8785 writes, strings may hold half a surrogate pair. Each of these would let two
//! different calls share one hash, and one approval cover both. So [`Params::parse`] refuses them and never normalises.
//!
//! ```
//! use holdpoint_core::Params;
//! let params = Params::parse(r#"{"to": "a", "amount": 10.0}"#).unwrap();
//! assert_eq!(params.canonical(), r#"{"amount":10,"to":"a"}"#);
//! let error = Params::parse(r#"{"id": 9007199254740993}"#).unwrap_err();
//! assert!(error.to_string().contains("send it as a string"));
//! ```

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

use crate::Digest;

/// How deep arrays and objects may nest.
pub const MAX_DEPTH: usize = 64;

/// The largest integer that a double holds exactly together with its neighbours.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// The parameters of a call: a JSON object, held in its one canonical spelling.
///
/// What is hashed, shown, stored and sent to the tool are these same bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Params(String);

/// Why a text cannot be the parameters of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadParams(String);

/// How the complaint about nesting begins.
const TOO_DEEP: &str = "nested deeper than";

impl BadParams {
    /// Whether it nests deeper than [`MAX_DEPTH`], and would be right if it were flatter.
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        self.0.starts_with(TOO_DEEP)
    }
}

impl Params {
    /// Reads parameters, refusing everything that has no single canonical spelling.
    ///
    /// # Errors
    ///
    /// Duplicate keys, integers beyond 2^53, nesting over [`MAX_DEPTH`], lone surrogates, NaN and infinities, anything
    /// that is not a JSON object. The message says what would be right.
    pub fn parse(text: &str) -> Result<Self, BadParams> {
        let value = parse_strict(text)?;
        if !value.is_object() {
            return Err(BadParams(format!(
                "arguments must be a JSON object, not {}",
                kind_of(&value)
            )));
        }
        Self::canonicalise(&value)
    }

    /// Takes a value that was parsed elsewhere.
    ///
    /// # Errors
    ///
    /// As [`Params::parse`]; duplicate keys and lone surrogates cannot occur in a [`Value`].
    pub fn from_value(value: &Value) -> Result<Self, BadParams> {
        Self::parse(&value.to_string())
    }

    fn canonicalise(value: &Value) -> Result<Self, BadParams> {
        serde_json_canonicalizer::to_string(value)
            .map(Self)
            .map_err(|error| BadParams(error.to_string()))
    }

    /// Reads arguments that were checked when they came in. Rules that became stricter since do not change the past; and
    /// were a text damaged, its hash would no longer be the one that was approved.
    pub(crate) fn from_stored(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// The canonical spelling (RFC 8785).
    #[must_use]
    pub fn canonical(&self) -> &str {
        &self.0
    }

    /// The parameters as a value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // INVARIANT: the text was produced by a serialiser.
        serde_json::from_str(&self.0).unwrap_or(Value::Null)
    }

    /// `params_hash`: the digest of RFC 8785 of `{tool, tool_version, params}`.
    #[must_use]
    pub fn hash(&self, tool: &str, tool_version: &str) -> Digest {
        // INVARIANT: in canonical order, `params` < `tool` < `tool_version`, and RFC 8785 writes strings as serde_json does.
        let text = format!(
            r#"{{"params":{},"tool":{},"tool_version":{}}}"#,
            self.0,
            Value::from(tool),
            Value::from(tool_version)
        );
        Digest::of(text.as_bytes())
    }
}

impl Default for Params {
    fn default() -> Self {
        Self("{}".to_owned())
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What was stored was checked when it came in; later, stricter rules do not change the past.
        let map = Map::deserialize(deserializer)?;
        Self::canonicalise(&Value::Object(map)).map_err(de::Error::custom)
    }
}

/// Reads any JSON value under the rules of [`Params::parse`].
///
/// # Errors
///
/// As [`Params::parse`], except that the value need not be an object.
pub fn parse_strict(text: &str) -> Result<Value, BadParams> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // Our own depth limit is lower than the parser's, and says what it is.
    let value = Strict { depth: 0 }
        .deserialize(&mut deserializer)
        .map_err(|error| explain(&error))?;
    deserializer.end().map_err(|error| explain(&error))?;
    Ok(value)
}

fn explain(error: &serde_json::Error) -> BadParams {
    let text = error.to_string();
    if text.contains("surrogate") || text.contains("hex escape") {
        return BadParams(format!(
            "{text}: half of a surrogate pair is not a character; send well-formed Unicode"
        ));
    }
    if text.contains("number out of range") {
        return BadParams(format!("{text}: send it as a string"));
    }
    if error.is_syntax() || error.is_eof() {
        return BadParams(format!("not valid JSON: {text}"));
    }
    BadParams(text)
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

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(E::custom(format!(
                "{TOO_DEEP} {MAX_DEPTH} levels; send a flatter structure, or the inner part as a string"
            )));
        }
        Ok(Self {
            depth: self.depth + 1,
        })
    }
}

fn too_large<E: de::Error>(number: impl fmt::Display) -> E {
    E::custom(format!(
        "the integer {number} is beyond 2^53, where JSON numbers lose digits; send it as a string"
    ))
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        if value > MAX_INTEGER {
            Err(too_large(value))
        } else {
            Ok(Value::from(value))
        }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > MAX_INTEGER {
            Err(too_large(value))
        } else {
            Ok(Value::from(value))
        }
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        // Integers too large for 64 bits arrive here, already rounded. Every double from 2^53 on is an integer.
        if value.abs() > MAX_INTEGER as f64 {
            return Err(too_large(value));
        }
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(inner)?;
            if map.contains_key(&key) {
                return Err(de::Error::custom(format!(
                    "the key `{key}` appears twice in one object; send it once"
                )));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_has_no_single_spelling_is_refused_with_the_remedy() {
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(64), "]".repeat(64));
        let cases = [
            (r#"{"a":1,"a":2}"#, "the key `a` appears twice"),
            (r#"{"o":{"a":1,"\u0061":2}}"#, "the key `a` appears twice"),
            (r#"{"n":9007199254740992}"#, "send it as a string"),
            (r#"{"n":-9007199254740993}"#, "send it as a string"),
            (r#"{"n":18446744073709551617}"#, "send it as a string"),
            (r#"{"n":9007199254740993.0}"#, "send it as a string"),
            (r#"{"n":1e400}"#, "send it as a string"),
            (r#"{"n":NaN}"#, "not valid JSON"),
            (r#"{"s":"\ud800"}"#, "surrogate"),
            (r#"{"s":"\udc00\ud800"}"#, "surrogate"),
            (deep.as_str(), "nested deeper than 64"),
            ("[1]", "must be a JSON object, not an array"),
            ("", "not valid JSON"),
            (r#"{"a":1} {}"#, "not valid JSON"),
        ];
        for (text, expected) in cases {
            let error = Params::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_largest_allowed_values_pass() {
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(63), "]".repeat(63));
        for text in [
            r#"{"n":9007199254740991}"#,
            r#"{"n":-9007199254740991}"#,
            r#"{"n":0.1}"#,
            "{}",
            &deep,
        ] {
            assert!(Params::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_hash_is_over_the_canonical_object_of_tool_version_and_params() {
        let params = Params::parse(r#"{"z":1,"é":"\u20ac","a":[true,null,1.50]}"#).unwrap();
        let whole =
            serde_json::json!({"tool": "t\"x", "tool_version": "1", "params": params.to_value()});
        let canonical = serde_json_canonicalizer::to_string(&whole).unwrap();
        assert_eq!(params.hash("t\"x", "1"), Digest::of(canonical.as_bytes()));
        assert_ne!(params.hash("t", "1"), params.hash("t", "2"));
    }

    #[test]
    fn a_tool_name_with_control_characters_hashes_as_rfc_8785_says() {
        let params = Params::parse("{}").unwrap();
        for tool in [
            "a\u{1}b",
            "tab\t",
            "del\u{7f}",
            "行\u{2028}",
            "\u{8}\u{c}\n\r\\/",
        ] {
            let whole = serde_json::json!({"tool": tool, "tool_version": "1", "params": {}});
            let canonical = serde_json_canonicalizer::to_string(&whole).unwrap();
            assert_eq!(
                params.hash(tool, "1"),
                Digest::of(canonical.as_bytes()),
                "{tool:?}"
            );
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-(1i64 << 53) + 1..(1i64 << 53)).prop_map(Value::from),
            (-1e15f64..1e15).prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_canonical_spelling_reads_back_as_itself(value in json()) {
            let params = Params::from_value(&serde_json::json!({"v": value})).unwrap();
            prop_assert_eq!(&Params::parse(params.canonical()).unwrap(), &params);
            let stored = serde_json::to_string(&params).unwrap();
            prop_assert_eq!(serde_json::from_str::<Params>(&stored).unwrap(), params);
        }
    }
}
