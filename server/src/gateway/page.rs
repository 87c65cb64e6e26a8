//! Pages of lists: `?prefix=`, `start_after=`, `limit=`.

use super::form;
use super::refuse::Refused;
use super::whole::Whole;
use axum::http::request::Parts;
use nova_model::Refusal;
use nova_model::limits::{LIST_LIMIT_MAX, STREAM_KEY_BYTES_MAX};
use nova_model::request::Page;
use serde::Deserialize;
use utoipa::IntoParams;

/// Which part of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// What the names begin with.
    #[param(value_type = Option<String>, max_length = 512)]
    prefix: String,
    /// Names after this one only.
    #[param(value_type = Option<String>, max_length = 512)]
    start_after: String,
    /// At most this many, 1 to 1,000.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000)]
    limit: Option<Whole>,
}

/// The page that a query asks for.
pub(crate) fn of(parts: &Parts) -> Result<Page, Refused> {
    let query: PageQuery = form::query(parts.uri.query())?;
    let most = LIST_LIMIT_MAX as u64;
    let limit = query.limit.map_or(most, |limit| limit.0);
    if limit == 0 || limit > most {
        let message = format!("limit is 1 to {most}, not {limit}");
        return Err(Refused::form("limit", message).with_limit(most));
    }
    for (field, text) in [
        ("prefix", &query.prefix),
        ("start_after", &query.start_after),
    ] {
        if text.len() > STREAM_KEY_BYTES_MAX {
            let most = STREAM_KEY_BYTES_MAX as u64;
            let message = format!("{field} has at most {most} bytes, not {}", text.len());
            return Err(Refused::from(Refusal::invalid(field, Some(most), message)));
        }
    }
    Ok(Page {
        prefix: query.prefix,
        start_after: query.start_after,
        limit: limit as u32,
    })
}
