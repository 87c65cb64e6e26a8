//! From text to typed values: JSON bodies and query strings, each mistake with its field named.
//!
//! # Invariants
//! - A field that nobody knows is refused, with the nearest known name; so is one that is there
//!   twice. A slip of the pen never means a default in silence.

use super::body;
use super::object::Object;
use super::refuse::Refused;
use super::state::Gateway;
use super::target::decode;
use crate::config::nearest::nearest;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::collections::BTreeSet;

/// How serde says that a field is unknown, and lists those that are not.
const UNKNOWN: &str = "unknown field ";
/// All that serde says of a field by its name.
const NAMED: [&str; 3] = [UNKNOWN, "duplicate field ", "missing field "];

/// Reads a JSON object; a mistake that is none of its fields is one of `at`.
pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8], at: &str) -> Result<T, Refused> {
    any_json::<Object<T>>(bytes, at).map(|object| object.0)
}

fn any_json<T: DeserializeOwned>(bytes: &[u8], at: &str) -> Result<T, Refused> {
    let mut input = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut input).map_err(|error| {
        let path = error.path().to_string();
        refuse(&path, &error.into_inner().to_string(), at)
    })?;
    match input.end() {
        Ok(()) => Ok(value),
        Err(error) => Err(refuse("", &error.to_string(), at)),
    }
}

/// Reads a query string.
pub(crate) fn query<T: DeserializeOwned>(query: Option<&str>) -> Result<T, Refused> {
    let mut pairs = Vec::new();
    let mut seen = BTreeSet::new();
    let parts = query.unwrap_or_default().split('&');
    for part in parts.filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let name = decode(&name.replace('+', " "), "query")?;
        let value = decode(&value.replace('+', " "), &name)?;
        if !seen.insert(name.clone()) {
            return Err(Refused::form(&name, format!("{name} is there twice")));
        }
        pairs.push((name, Text(value)));
    }
    let input = MapDeserializer::<_, serde::de::value::Error>::new(pairs.into_iter());
    serde_path_to_error::deserialize(input).map_err(|error| {
        let path = error.path().to_string();
        refuse(&path, &error.into_inner().to_string(), "query")
    })
}

/// The JSON of a body that must be there.
pub(crate) fn required_json<T: DeserializeOwned>(
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<T, Refused> {
    check_json(headers)?;
    json(bytes, "body")
}

/// The JSON of a body; what nothing says is the default.
pub(crate) fn optional_json<T: DeserializeOwned + Default>(
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<T, Refused> {
    if bytes.is_empty() {
        return Ok(T::default());
    }
    check_json(headers)?;
    let said: Option<Object<T>> = any_json(bytes, "body")?;
    Ok(said.unwrap_or_default().0)
}

fn check_json(headers: &HeaderMap) -> Result<(), Refused> {
    match content_type(headers)?.as_deref() {
        None | Some("application/json") => Ok(()),
        Some(_) => {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            let message = "this request takes application/json";
            Err(Refused::form_as(status, "content-type", message))
        }
    }
}

/// The JSON of a request that has a body and no query.
pub(crate) async fn body<T: DeserializeOwned>(
    gateway: &Gateway,
    request: Request,
) -> Result<T, Refused> {
    let (parts, body) = request.into_parts();
    no_query(&parts)?;
    let body = body::read(gateway, &parts.headers, body).await?;
    required_json(&parts.headers, &body.bytes)
}

/// A request that has neither body nor query.
pub(crate) async fn no_body(gateway: &Gateway, request: Request) -> Result<(), Refused> {
    let (parts, body) = request.into_parts();
    no_query(&parts)?;
    let body = body::read(gateway, &parts.headers, body).await?;
    if body.bytes.is_empty() {
        return Ok(());
    }
    Err(Refused::form("body", "this request takes no body"))
}

/// Refuses a query where there is nothing to ask.
pub(crate) fn no_query(parts: &Parts) -> Result<(), Refused> {
    query::<Nothing>(parts.uri.query()).map(|Nothing {}| ())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// The media type of a body, in small letters and without parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> Result<Option<String>, Refused> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(None);
    };
    let text = value.to_str().map_err(|_| {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Refused::form_as(status, "content-type", "it is not ASCII")
    })?;
    let essence = text.split(';').next().unwrap_or_default();
    Ok(Some(essence.trim().to_ascii_lowercase()))
}

fn refuse(path: &str, message: &str, at: &str) -> Refused {
    // A question mark stands for a field whose name did not come.
    let path = path.trim_end_matches('?').trim_end_matches('.');
    let named = NAMED.iter().find(|named| message.starts_with(**named));
    let mut names = message.split('`').skip(1).step_by(2);
    let (Some(named), Some(name)) = (named, names.next()) else {
        let field = if path.is_empty() { at } else { path };
        return Refused::form(field, message);
    };
    let is_last = path == name || path.ends_with(&format!(".{name}"));
    let field = match path {
        "" => name.to_owned(),
        _ if is_last => path.to_owned(),
        _ => format!("{path}.{name}"),
    };
    if *named != UNKNOWN {
        return Refused::form(&field, message);
    }
    let mut said = format!("there is no field '{name}'");
    if let Some(known) = nearest(name, names) {
        said.push_str(&format!("; did you mean '{known}'?"));
    }
    Refused::form(&field, said)
}

/// A value of a query string: what it is depends on who reads it.
struct Text(String);

impl<'de> IntoDeserializer<'de, serde::de::value::Error> for Text {
    type Deserializer = Text;

    fn into_deserializer(self) -> Text {
        self
    }
}

impl<'de> Deserializer<'de> for Text {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_string(self.0)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let is_plain = !self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_digit());
        match self.0.parse() {
            Ok(number) if is_plain => visitor.visit_u64(number),
            _ => Err(wrong(&self.0, "a whole number")),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0.as_str() {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(wrong(&self.0, "true or false")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

fn wrong(found: &str, wanted: &str) -> serde::de::value::Error {
    let found: String = found.chars().take(64).collect();
    serde::de::Error::custom(format!("'{found}' is not {wanted}"))
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
