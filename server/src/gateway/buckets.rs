//! `/v1/buckets/...`: buckets, the defaults of their streams.

use super::body;
use super::document::{BucketParam, Problems};
use super::form;
use super::object::Object;
use super::page::{self, PageQuery};
use super::refuse::Refused;
use super::shapes::{BucketShape, BucketsShape, SettingsShape};
use super::state::Gateway;
use super::streams::{CreateQuery, checked, unexpected};
use super::target::BucketTarget;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use nova_model::placement::bucket_home;
use nova_model::request::{self, Answer, BucketInfo};
use nova_model::settings::{BucketChange, BucketSettings};
use nova_model::{BucketName, CoreId};
use serde::Deserialize;
use utoipa::ToSchema;

/// Settings of a bucket as far as they are said.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = BucketSettings)]
pub(crate) struct BucketBody {
    /// An append to a stream that is not there makes it.
    create_stream_on_append: Option<bool>,
    /// A read of a stream that is not there makes it.
    create_stream_on_read: Option<bool>,
    /// Defaults of its streams.
    #[schema(value_type = Option<SettingsShape>)]
    defaults: Option<Object<SettingsShape>>,
}

impl BucketBody {
    /// What is said.
    fn change(self) -> Result<BucketChange, Refused> {
        let defaults = self.defaults.map(|Object(said)| checked(said));
        Ok(BucketChange {
            defaults: defaults.transpose()?.unwrap_or_default(),
            create_stream_on_append: self.create_stream_on_append,
            create_stream_on_read: self.create_stream_on_read,
        })
    }
}

/// Make a bucket, or find it there
#[utoipa::path(
    put,
    path = "/v1/buckets/{bucket}",
    tag = "buckets",
    params(("bucket" = BucketParam, Path, description = "The bucket"), CreateQuery),
    request_body = Option<BucketBody>,
    responses(
        (status = 200, description = "It was there", body = BucketShape),
        (status = 201, description = "It was made", body = BucketShape),
        Problems,
    ),
)]
pub(crate) async fn create_bucket(
    State(gateway): State<Gateway>,
    BucketTarget(name): BucketTarget,
    request: Request,
) -> Result<(StatusCode, Json<BucketShape>), Refused> {
    let (parts, body) = request.into_parts();
    let exclusive = CreateQuery::of(&parts)?;
    let body = body::read(&gateway, &parts.headers, body).await?;
    let said: BucketBody = form::optional_json(&parts.headers, &body.bytes)?;
    let request = request::Request::CreateBucket {
        settings: BucketSettings::default().changed_by(&said.change()?),
        name: name.clone(),
        exclusive,
    };
    let (info, created) = ask(&gateway, &name, request).await?;
    let status = if created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(BucketShape::from(&info))))
}

/// Describe a bucket
#[utoipa::path(
    get,
    path = "/v1/buckets/{bucket}",
    tag = "buckets",
    params(("bucket" = BucketParam, Path, description = "The bucket")),
    responses((status = 200, description = "As it is", body = BucketShape), Problems),
)]
pub(crate) async fn describe_bucket(
    State(gateway): State<Gateway>,
    BucketTarget(name): BucketTarget,
    parts: Parts,
) -> Result<Json<BucketShape>, Refused> {
    form::no_query(&parts)?;
    let request = request::Request::DescribeBucket { name: name.clone() };
    let (info, _) = ask(&gateway, &name, request).await?;
    Ok(Json(BucketShape::from(&info)))
}

/// Change the settings that are said; the others stay
#[utoipa::path(
    patch,
    path = "/v1/buckets/{bucket}",
    tag = "buckets",
    params(("bucket" = BucketParam, Path, description = "The bucket")),
    request_body = BucketBody,
    responses((status = 200, description = "As it is now", body = BucketShape), Problems),
)]
pub(crate) async fn change_bucket(
    State(gateway): State<Gateway>,
    BucketTarget(name): BucketTarget,
    request: Request,
) -> Result<Json<BucketShape>, Refused> {
    let said: BucketBody = form::body(&gateway, request).await?;
    let change = request::Request::ReconfigureBucket {
        name: name.clone(),
        change: said.change()?,
    };
    let (info, _) = ask(&gateway, &name, change).await?;
    Ok(Json(BucketShape::from(&info)))
}

/// Delete a bucket that holds no stream
#[utoipa::path(
    delete,
    path = "/v1/buckets/{bucket}",
    tag = "buckets",
    params(("bucket" = BucketParam, Path, description = "The bucket")),
    responses((status = 204, description = "It is gone"), Problems),
)]
pub(crate) async fn delete_bucket(
    State(gateway): State<Gateway>,
    BucketTarget(name): BucketTarget,
    request: Request,
) -> Result<StatusCode, Refused> {
    form::no_body(&gateway, request).await?;
    let home = bucket_home(&name);
    let request = request::Request::DeleteBucket { name };
    match gateway.cores.request_at(home, request).await? {
        Answer::Deleted => Ok(StatusCode::NO_CONTENT),
        other => Err(unexpected(&other)),
    }
}

/// List buckets, in byte order of their names
#[utoipa::path(
    get,
    path = "/v1/buckets",
    tag = "buckets",
    params(PageQuery),
    responses((status = 200, description = "A page of them", body = BucketsShape), Problems),
)]
pub(crate) async fn list_buckets(
    State(gateway): State<Gateway>,
    parts: Parts,
) -> Result<Json<BucketsShape>, Refused> {
    let request = request::Request::ListBuckets {
        page: page::of(&parts)?,
    };
    match gateway.cores.request_at(CoreId(0), request).await? {
        Answer::Buckets { items, has_more } => Ok(Json(BucketsShape {
            buckets: items.iter().map(BucketShape::from).collect(),
            has_more,
        })),
        other => Err(unexpected(&other)),
    }
}

async fn ask(
    gateway: &Gateway,
    name: &BucketName,
    request: request::Request,
) -> Result<(BucketInfo, bool), Refused> {
    match gateway.cores.request_at(bucket_home(name), request).await? {
        Answer::Bucket { info, created } => Ok((info, created)),
        other => Err(unexpected(&other)),
    }
}
