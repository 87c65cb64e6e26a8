//! The client of nova, on tokio.
//!
//! A [`Client`] enters a star at the address of any of its cores. It follows streams to whoever
//! leads them, opens one QUIC connection per core and shares it, and connects again when one
//! breaks; callers see none of that.
//!
//! # Appending
//! A [`Producer`] appends to one stream. Records of many callers ride together while the ones
//! before them are on their way; each caller gets its own positions, once they are durable.
//! ```no_run
//! use nova_client::{Client, ClientConfig, ProducerConfig, Record, StreamName};
//!
//! # async fn append() -> Result<(), nova_client::ClientError> {
//! let client = Client::connect(ClientConfig::new("localhost:4433", "ca.pem"))?;
//! let orders = StreamName::parse("shop/orders")?;
//! let producer = client.producer(orders, ProducerConfig::default())?;
//! let placed = producer.append(Record::new("first order")).await?;
//! println!("durable at {}", placed.start.sequence);
//!
//! let mut tickets = Vec::new();
//! for n in 0..1000 {
//!     tickets.push(producer.append_async(Record::new(format!("order {n}"))).await?);
//! }
//! producer.flush().await?; // all of them have their result now
//! for ticket in tickets {
//!     ticket.await?;
//! }
//! producer.close().await
//! # }
//! ```
//!
//! # Reading
//! A [`Reader`] gives batches from any position on, and follows the stream if asked to.
//! ```no_run
//! use nova_client::{Client, ClientConfig, ReadItem, StreamName, read_from};
//!
//! # async fn read() -> Result<(), nova_client::ClientError> {
//! let client = Client::connect(ClientConfig::new("localhost:4433", "ca.pem"))?;
//! let mut open = read_from(StreamName::parse("shop/orders")?, 0);
//! open.follow = true;
//! let mut reader = client.read(open).await?;
//! while let Some(item) = reader.next_batch().await? {
//!     match item {
//!         ReadItem::Batch(batch) => batch.for_each(|position, record| {
//!             println!("{}: {} bytes", position.sequence, record.body().len());
//!         }),
//!         ReadItem::CaughtUp(tail) => println!("nothing behind {} yet", tail.sequence),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # When the outcome is not known
//! With its default settings a producer recognises what it sends twice, so a broken connection
//! neither loses nor doubles a record. Where an outcome stays unknown all the same, the error says
//! so and carries what is needed to find out.
//! ```no_run
//! use nova_client::{Client, ClientConfig, ProducerConfig, Record, StreamName};
//!
//! # async fn settle() -> Result<(), nova_client::ClientError> {
//! let client = Client::connect(ClientConfig::new("localhost:4433", "ca.pem"))?;
//! let orders = StreamName::parse("shop/orders")?;
//! let producer = client.producer(orders.clone(), ProducerConfig::default())?;
//! let order = Record::new("second order").with_header("id", "order-7f3a");
//! let placed = match producer.append(order.clone()).await {
//!     Err(error) if error.ambiguity().is_some() => {
//!         let ambiguity = error.ambiguity().expect("looked at above");
//!         client.settle_append(&orders, ambiguity, None, &[order]).await?
//!     }
//!     result => result?,
//! };
//! println!("durable at {}", placed.start.sequence);
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//! - All decisions are in [`core`], without IO; the driver around it moves facts.
//! - Errors say what a caller can do; the bits on the wire decide what is tried again.
//!
//! # Not here
//! - The bytes of frames: `nova-proto`. QUIC: `nova-quic`. The log: the star.
#![forbid(unsafe_code)]

mod admin;
mod client;
mod config;
pub mod core;
mod driver;
mod error;
mod producer;
mod reader;
mod settle;
mod star;
mod ticket;

pub use crate::core::cursor::ReadBatch;
pub use crate::core::{Ambiguity, Appended};
pub use admin::Listed;
pub use client::{AppendOnce, Client};
pub use config::{Authorities, ClientConfig, ProducerConfig};
pub use error::{ClientError, ConfigError};
pub use nova_model::request::{
    BucketInfo, Page, ReadLimits, ReadOpen, ReadStart, StarInfo, StreamInfo,
};
pub use nova_model::settings::{BucketSettings, ProducerPolicy, StreamSettings};
pub use nova_model::{
    BucketName, Code, Conditions, Facts, FencingToken, Position, Record, Refusal, SequenceNumber,
    StreamName, Timestamp,
};
pub use producer::Producer;
pub use reader::{ReadItem, Reader};
pub use ticket::Ticket;

/// A read of a stream from a sequence number up to the tail; set `limits`, `follow` and `clamp`
/// as needed.
pub fn read_from(stream: StreamName, start: u64) -> ReadOpen {
    ReadOpen {
        stream,
        stream_id: None,
        start: ReadStart::Sequence(SequenceNumber(start)),
        limits: ReadLimits::default(),
        follow: false,
        clamp: false,
    }
}
