//! Whole numbers as JSON and queries have them: 0 to 2^63 - 1.
//!
//! Many readers of JSON keep numbers as signed 64 bits, so the upper half of what the star could
//! count is refused instead of misread.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};

/// A whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Whole(pub(crate) u64);

/// The largest.
pub(crate) const WHOLE_MAX: u64 = i64::MAX as u64;

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Whole, D::Error> {
        match u64::deserialize(input)? {
            number @ 0..=WHOLE_MAX => Ok(Whole(number)),
            number => {
                let message = format!("{number} is over {WHOLE_MAX}");
                Err(serde::de::Error::custom(message))
            }
        }
    }
}

impl utoipa::PartialSchema for Whole {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(0))
            .maximum(Some(i64::MAX as isize))
            .into()
    }
}

impl utoipa::ToSchema for Whole {}

#[cfg(test)]
#[path = "whole_tests.rs"]
mod tests;
