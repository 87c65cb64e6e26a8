//! `/v1/star` and `/v1/admin/...`: the star, and where its streams are led.

use super::document::Problems;
use super::form;
use super::refuse::Refused;
use super::star_shapes::{MoveShape, PlacementShape, RebalancedShape, StarShape, StatusShape};
use super::state::Gateway;
use super::streams::unexpected;
use super::whole::CoreNumber;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use nova_model::CoreId;
use nova_model::request::{self, Answer, CoreSet};
use serde::Deserialize;
use utoipa::ToSchema;

/// Any core can tell.
const ANY_CORE: CoreId = CoreId(0);

/// Tell who the star is and where its cores are
#[utoipa::path(
    get,
    path = "/v1/star",
    tag = "admin",
    responses((status = 200, description = "The star", body = StarShape), Problems),
)]
pub(crate) async fn star(
    State(gateway): State<Gateway>,
    parts: Parts,
) -> Result<Json<StarShape>, Refused> {
    form::no_query(&parts)?;
    match ask(&gateway, request::Request::DescribeStar).await? {
        Answer::Star(info) => Ok(Json(StarShape::from(&info))),
        other => Err(unexpected(&other)),
    }
}

/// Tell the load and the state of every core
#[utoipa::path(
    get,
    path = "/v1/admin/status",
    tag = "admin",
    responses((status = 200, description = "At the moment", body = StatusShape), Problems),
)]
pub(crate) async fn status(
    State(gateway): State<Gateway>,
    parts: Parts,
) -> Result<Json<StatusShape>, Refused> {
    form::no_query(&parts)?;
    match ask(&gateway, request::Request::Status).await? {
        Answer::Status(status) => Ok(Json(StatusShape::from(&status))),
        other => Err(unexpected(&other)),
    }
}

/// Which cores: one of them, or all if none is named.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = CoreSet)]
pub(crate) struct CoresBody {
    /// The number of a core.
    core: Option<CoreNumber>,
}

impl CoresBody {
    fn cores(self) -> CoreSet {
        match self.core {
            Some(core) => CoreSet::One(core.0),
            None => CoreSet::All,
        }
    }
}

/// Hand all that a core leads to the others, and place no stream there from then on
#[utoipa::path(
    post,
    path = "/v1/admin/drain",
    tag = "admin",
    request_body = CoresBody,
    responses((status = 200, description = "It is drained", body = PlacementShape), Problems),
)]
pub(crate) async fn drain(
    State(gateway): State<Gateway>,
    request: Request,
) -> Result<Json<PlacementShape>, Refused> {
    let body: CoresBody = form::body(&gateway, request).await?;
    let cores = body.cores();
    placement(ask(&gateway, request::Request::Drain { cores }).await?)
}

/// Place streams on a core again
#[utoipa::path(
    post,
    path = "/v1/admin/undrain",
    tag = "admin",
    request_body = CoresBody,
    responses((status = 200, description = "It takes streams", body = PlacementShape), Problems),
)]
pub(crate) async fn undrain(
    State(gateway): State<Gateway>,
    request: Request,
) -> Result<Json<PlacementShape>, Refused> {
    let body: CoresBody = form::body(&gateway, request).await?;
    let cores = body.cores();
    placement(ask(&gateway, request::Request::Undrain { cores }).await?)
}

/// Spread the streams that are led over the cores by measured load
#[utoipa::path(
    post,
    path = "/v1/admin/rebalance",
    tag = "admin",
    responses((status = 200, description = "What moved", body = RebalancedShape), Problems),
)]
pub(crate) async fn rebalance(
    State(gateway): State<Gateway>,
    request: Request,
) -> Result<Json<RebalancedShape>, Refused> {
    form::no_body(&gateway, request).await?;
    match ask(&gateway, request::Request::Rebalance).await? {
        Answer::Rebalanced { moves, has_more } => Ok(Json(RebalancedShape {
            moves: moves.iter().map(MoveShape::from).collect(),
            has_more,
        })),
        other => Err(unexpected(&other)),
    }
}

fn placement(answer: Answer) -> Result<Json<PlacementShape>, Refused> {
    match answer {
        Answer::Placement { drained, moved } => Ok(Json(PlacementShape::new(&drained, moved))),
        other => Err(unexpected(&other)),
    }
}

async fn ask(gateway: &Gateway, request: request::Request) -> Result<Answer, Refused> {
    Ok(gateway.cores.request_at(ANY_CORE, request).await?)
}
