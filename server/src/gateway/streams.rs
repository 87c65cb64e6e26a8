//! `/v1/streams/...`: streams, their tails, fences, trims and moves.

use super::append::{conditions, incarnation};
use super::body;
use super::cores::Cores;
use super::document::{BucketParam, KeyParam, Problems};
use super::form;
use super::page::{self, PageQuery};
use super::refuse::Refused;
use super::shapes::{
    FencedShape, MovedShape, PositionShape, SettingsShape, StreamShape, StreamsShape, TrimmedShape,
};
use super::state::Gateway;
use super::target::{BucketTarget, StreamTarget};
use super::whole::{CoreNumber, Whole};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use nova_client::core::listing::{Listing, Round, Unfit};
use nova_model::names::BucketName;
use nova_model::request::{self, Answer, Page, StreamInfo};
use nova_model::settings::StreamSettings;
use nova_model::{Code, FencingToken, Refusal, SequenceNumber};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

/// Whether a `PUT` must make what it names.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct CreateQuery {
    /// Refuse with `ALREADY_EXISTS` if it is there; `If-None-Match: *` says the same.
    #[param(value_type = Option<bool>)]
    exclusive: bool,
}

impl CreateQuery {
    /// Whether it must be made.
    pub(crate) fn of(parts: &Parts) -> Result<bool, Refused> {
        let query: CreateQuery = form::query(parts.uri.query())?;
        Ok(query.exclusive || is_none_match(&parts.headers)?)
    }
}

fn is_none_match(headers: &HeaderMap) -> Result<bool, Refused> {
    match headers
        .get(header::IF_NONE_MATCH)
        .map(|value| value.as_bytes())
    {
        None => Ok(false),
        Some(b"*") => Ok(true),
        Some(_) => Err(Refused::form("if-none-match", "it can only be *")),
    }
}

/// Make a stream, or find it there
///
/// The body holds the settings that the stream says itself; the rest comes from its bucket.
#[utoipa::path(
    put,
    path = "/v1/streams/{bucket}/{key}",
    tag = "streams",
    params(
        ("bucket" = BucketParam, Path, description = "The bucket"),
        ("key" = KeyParam, Path, description = "The key, percent-encoded as one segment"),
        CreateQuery,
    ),
    request_body = Option<SettingsShape>,
    responses(
        (status = 200, description = "It was there", body = StreamShape),
        (status = 201, description = "It was made", body = StreamShape),
        Problems,
    ),
)]
pub(crate) async fn create_stream(
    State(gateway): State<Gateway>,
    StreamTarget(name): StreamTarget,
    request: Request,
) -> Result<(StatusCode, Json<StreamShape>), Refused> {
    let (parts, body) = request.into_parts();
    let exclusive = CreateQuery::of(&parts)?;
    let body = body::read(&gateway, &parts.headers, body).await?;
    let settings: SettingsShape = form::optional_json(&parts.headers, &body.bytes)?;
    let request = request::Request::CreateStream {
        name: name.clone(),
        settings: checked(settings)?,
        exclusive,
    };
    let (info, created) = stream(gateway.cores.request(&name, request).await?)?;
    let status = if created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(StreamShape::from(&info))))
}

/// Describe a stream
#[utoipa::path(
    get,
    path = "/v1/streams/{bucket}/{key}",
    tag = "streams",
    params(
        ("bucket" = BucketParam, Path, description = "The bucket"),
        ("key" = KeyParam, Path, description = "The key, percent-encoded as one segment"),
    ),
    responses((status = 200, description = "As it is", body = StreamShape), Problems),
)]
pub(crate) async fn describe_stream(
    State(gateway): State<Gateway>,
    StreamTarget(name): StreamTarget,
    parts: Parts,
) -> Result<Json<StreamShape>, Refused> {
    form::no_query(&parts)?;
    let request = request::Request::DescribeStream { name: name.clone() };
    let (info, _) = stream(gateway.cores.request(&name, request).await?)?;
    Ok(Json(StreamShape::from(&info)))
}

/// Change the settings that are said; the others stay
#[utoipa::path(
    patch,
    path = "/v1/streams/{bucket}/{key}",
    tag = "streams",
    params(
        ("bucket" = BucketParam, Path, description = "The bucket"),
        ("key" = KeyParam, Path, description = "The key, percent-encoded as one segment"),
        ("nova-stream-id" = Option<String>, Header, pattern = "^[0-9a-f]{32}$",
            description = "The incarnation that the stream must be"),
    ),
    request_body = SettingsShape,
    responses((status = 200, description = "As it is now", body = StreamShape), Problems),
)]
pub(crate) async fn change_stream(
    State(gateway): State<Gateway>,
    StreamTarget(name): StreamTarget,
    request: Request,
) -> Result<Json<StreamShape>, Refused> {
    let stream_id = incarnation(request.headers())?;
    let settings: SettingsShape = form::body(&gateway, request).await?;
    let request = request::Request::ReconfigureStream {
        name: name.clone(),
        stream_id,
        change: checked(settings)?,
    };
    let (info, _) = stream(gateway.cores.request(&name, request).await?)?;
    Ok(Json(StreamShape::from(&info)))
}

/// Delete a stream with all its records
#[utoipa::path(
    delete,
    path = "/v1/streams/{bucket}/{key}",
    tag = "streams",
    params(
        ("bucket" = BucketParam, Path, description = "The bucket"),
        ("key" = KeyParam, Path, description = "The key, percent-encoded as one segment"),
        ("nova-stream-id" = Option<String>, Header, pattern = "^[0-9a-f]{32}$",
            description = "The incarnation that the stream must be"),
    ),
    responses((status = 204, description = "It is gone"), Problems),
)]
pub(crate) async fn delete_stream(
    State(gateway): State<Gateway>,
    StreamTarget(name): StreamTarget,
    request: Request,
) -> Result<StatusCode, Refused> {
    let stream_id = incarnation(request.headers())?;
    form::no_body(&gateway, request).await?;
    let request = request::Request::DeleteStream {
        name: name.clone(),
        stream_id,
    };
    match gateway.cores.request(&name, request).await? {
        Answer::Deleted => Ok(StatusCode::NO_CONTENT),
        other => Err(unexpected(&other)),
    }
}

/// List the streams of a bucket, in byte order of their keys
#[utoipa::path(
    get,
    path = "/v1/streams/{bucket}",
    tag = "streams",
    params(("bucket" = BucketParam, Path, description = "The bucket"), PageQuery),
    responses((status = 200, description = "A page of them", body = StreamsShape), Problems),
)]
pub(crate) async fn list_streams(
    State(gateway): State<Gateway>,
    BucketTarget(bucket): BucketTarget,
    parts: Parts,
) -> Result<Json<StreamsShape>, Refused> {
    let page = page::of(&parts)?;
    let (streams, has_more) = all_streams(&gateway.cores, &bucket, &page).await?;
    Ok(Json(StreamsShape {
        streams: streams.iter().map(StreamShape::from).collect(),
        has_more,
    }))
}

/// A page over all cores: each tells those that it speaks for.
async fn all_streams(
    cores: &Cores,
    bucket: &BucketName,
    page: &Page,
) -> Result<(Vec<StreamInfo>, bool), Refused> {
    let mut listing = Listing::new(bucket.clone(), page.clone(), cores.all().count());
    loop {
        let requests = match listing.next_round() {
            Round::Ask(requests) => requests,
            Round::Done(items, has_more) => return Ok((items, has_more)),
            Round::Restless(refusal) => return Err(refusal.into()),
        };
        for (core, request) in cores.all().zip(requests) {
            let answer = cores.request_at(core, request).await?;
            let fits = listing.answered(usize::from(core.0), answer);
            fits.map_err(|Unfit| answered_another())?;
        }
    }
}

/// Tell the committed tail
#[utoipa::path(
    get,
    path = "/v1/streams/{bucket}/{key}/tail",
    tag = "records",
    params(
        ("bucket" = BucketParam, Path, description = "The bucket"),
        ("key" = KeyParam, Path, description = "The key, percent-encoded as one segment"),
    ),
    responses(
        (status = 200, description = "Every append answered before is in it", body = PositionShape),
        Problems,
    ),
)]
pub(crate) async fn tail(
    State(gateway): State<Gateway>,
    StreamTarget(name): StreamTarget,
    parts: Parts,
) -> Result<Json<PositionShape>, Refused> {
    form::no_query(&parts)?;
    let request = request::Request::CheckTail { name: name.clone() };
    match gateway.cores.request(&name, request).await? {
        Answer::Tail(tail) => Ok(Json(tail.into())),
        other => Err(unexpected(&other)),
    }
}

/// A token to install, and what must be there now.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Fence)]
pub(crate) struct FenceBody {
    /// The new token; empty removes the one that is installed.
    #[schema(max_length = 36)]
    token: String,
    /// The token that must be installed now.
    #[schema(max_length = 36)]
    fence: Option<String>,
    /// What the tail must be.
    match_seq: Option<Whole>,
}

/// Install a fencing token, durably and in order with appends
#[utoipa::path(
    post,
    path = "/v1/streams/{bucket}/{key}/fence",
    tag = "streams",
    params(
        ("bucket" = BucketParam, Path, description = "The bucket"),
        ("key" = KeyParam, Path, description = "The key, percent-encoded as one segment"),
        ("nova-stream-id" = Option<String>, Header, pattern = "^[0-9a-f]{32}$",
            description = "The incarnation that the stream must be"),
    ),
    request_body = FenceBody,
    responses((status = 200, description = "It is installed", body = FencedShape), Problems),
)]
pub(crate) async fn fence(
    State(gateway): State<Gateway>,
    StreamTarget(name): StreamTarget,
    request: Request,
) -> Result<Json<FencedShape>, Refused> {
    let stream_id = incarnation(request.headers())?;
    let body: FenceBody = form::body(&gateway, request).await?;
    let token = FencingToken::parse(&body.token).map_err(Refused::from)?;
    let request = request::Request::Fence {
        name: name.clone(),
        stream_id,
        token,
        conditions: conditions(body.fence.as_deref(), body.match_seq)?,
    };
    match gateway.cores.request(&name, request).await? {
        Answer::Fenced { tail } => Ok(Json(FencedShape {
            fence: body.token,
            tail: tail.into(),
        })),
        other => Err(unexpected(&other)),
    }
}

/// What to forget, and what must be there now.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Trim)]
pub(crate) struct TrimBody {
    /// First record that stays.
    first: Whole,
    /// The token that must be installed now.
    #[schema(max_length = 36)]
    fence: Option<String>,
    /// What the tail must be.
    match_seq: Option<Whole>,
}

/// Forget the records before one, durably and in order with appends
#[utoipa::path(
    post,
    path = "/v1/streams/{bucket}/{key}/trim",
    tag = "streams",
    params(
        ("bucket" = BucketParam, Path, description = "The bucket"),
        ("key" = KeyParam, Path, description = "The key, percent-encoded as one segment"),
        ("nova-stream-id" = Option<String>, Header, pattern = "^[0-9a-f]{32}$",
            description = "The incarnation that the stream must be"),
    ),
    request_body = TrimBody,
    responses((status = 200, description = "They are forgotten", body = TrimmedShape), Problems),
)]
pub(crate) async fn trim(
    State(gateway): State<Gateway>,
    StreamTarget(name): StreamTarget,
    request: Request,
) -> Result<Json<TrimmedShape>, Refused> {
    let stream_id = incarnation(request.headers())?;
    let body: TrimBody = form::body(&gateway, request).await?;
    let request = request::Request::Trim {
        name: name.clone(),
        stream_id,
        first: SequenceNumber(body.first.0),
        conditions: conditions(body.fence.as_deref(), body.match_seq)?,
    };
    match gateway.cores.request(&name, request).await? {
        Answer::Trimmed { first, tail } => Ok(Json(TrimmedShape {
            first: Whole(first.0),
            tail: tail.into(),
        })),
        other => Err(unexpected(&other)),
    }
}

/// Where a stream is to go.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HandOff)]
pub(crate) struct HandOffBody {
    /// The number of the core that leads from then on.
    to: CoreNumber,
}

/// Hand a stream's leadership to another core; producers and readers follow it
#[utoipa::path(
    post,
    path = "/v1/streams/{bucket}/{key}/handoff",
    tag = "admin",
    params(
        ("bucket" = BucketParam, Path, description = "The bucket"),
        ("key" = KeyParam, Path, description = "The key, percent-encoded as one segment"),
    ),
    request_body = HandOffBody,
    responses((status = 200, description = "It leads now", body = MovedShape), Problems),
)]
pub(crate) async fn hand_off(
    State(gateway): State<Gateway>,
    StreamTarget(name): StreamTarget,
    request: Request,
) -> Result<Json<MovedShape>, Refused> {
    let body: HandOffBody = form::body(&gateway, request).await?;
    let request = request::Request::HandOff {
        name: name.clone(),
        to: body.to.0,
    };
    match gateway.cores.request(&name, request).await? {
        Answer::Moved {
            core,
            address,
            epoch,
        } => Ok(Json(MovedShape {
            core: core.0,
            address,
            epoch: Whole(epoch.0),
        })),
        other => Err(unexpected(&other)),
    }
}

/// Settings that mean something.
pub(crate) fn checked(said: SettingsShape) -> Result<StreamSettings, Refused> {
    let settings = said.settings();
    let retention = settings.retention.unwrap_or_default();
    let bounds = [
        ("retention.age_s", retention.age_s),
        ("retention.bytes", retention.bytes),
    ];
    for (field, bound) in bounds {
        if bound == Some(0) {
            let message = "it is at least 1; leave it out to keep records for ever";
            return Err(Refusal::invalid(field, Some(1), message).into());
        }
    }
    settings.check()?;
    Ok(settings)
}

fn stream(answer: Answer) -> Result<(StreamInfo, bool), Refused> {
    match answer {
        Answer::Stream { info, created } => Ok((info, created)),
        other => Err(unexpected(&other)),
    }
}

/// A core answered what was not asked.
pub(crate) fn unexpected(answer: &Answer) -> Refused {
    tracing::error!(?answer, "an answer to another request");
    answered_another()
}

fn answered_another() -> Refused {
    Refusal::new(Code::Internal, "a core answered another request").into()
}
