//! Whole numbers as JSON and queries have them: 0 to 2^63 - 1.
//!
//! Many readers of JSON keep numbers as signed 64 bits, so the upper half of what the star could
//! count is refused instead of misread.

use nova_model::CoreId;
use nova_model::limits::STAR_CORES_MAX;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};

/// A whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Whole(pub(crate) u64);

/// The largest.
pub(crate) const WHOLE_MAX: u64 = i64::MAX as u64;
/// The largest up to which every whole number is a double: 2^53.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Whole, D::Error> {
        input.deserialize_u64(WholeVisitor)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to {WHOLE_MAX}")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
        match number {
            0..=WHOLE_MAX => Ok(Whole(number)),
            _ => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
        }
    }

    /// `7.0` is a whole number, as JSON Schema has it; over 2^53 nobody knows which it was.
    fn visit_f64<E: Error>(self, number: f64) -> Result<Whole, E> {
        if number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number) {
            return Ok(Whole(number as u64));
        }
        Err(E::invalid_value(Unexpected::Float(number), &self))
    }
}

/// The number of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CoreNumber(pub(crate) CoreId);

/// The largest that a star can have.
const CORE_MAX: u64 = STAR_CORES_MAX as u64 - 1;

impl<'de> Deserialize<'de> for CoreNumber {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<CoreNumber, D::Error> {
        match Whole::deserialize(input)? {
            Whole(number @ 0..=CORE_MAX) => Ok(CoreNumber(CoreId(number as u16))),
            Whole(number) => {
                let message = format!("{number} is over {CORE_MAX}");
                Err(D::Error::custom(message))
            }
        }
    }
}

impl Serialize for CoreNumber {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_u16(self.0.0)
    }
}

impl utoipa::PartialSchema for CoreNumber {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            .maximum(Some(CORE_MAX as isize))
            .into()
    }
}

impl utoipa::ToSchema for CoreNumber {}

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
