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
//! A [`Reader`] gives batches from any position on, and follows the stream if asked to. A star that
//! is away is waited for without an end; [`Reader::into_stream`] gives the same as a `Stream`.
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
//! # Writing the same things from several processes
//! Where several processes may write the same entity (a stream each), after a change of route, a
//! restart or a retry by another one, an [`EntityWriter`] stores each update once: it is known by
//! an id that the client chose, and it is written only if nothing was appended since the stream
//! was read. [`core::fenced`] says what that guarantees and for how long; `examples/ordered_writes`
//! kills such processes at random and checks the result.
//! ```no_run
//! use nova_client::{Client, ClientConfig, EntityWriterConfig, Record, StreamName, Update};
//!
//! # async fn write() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(ClientConfig::new("localhost:4433", "ca.pem"))?;
//! let writer = client.entity_writer(EntityWriterConfig::default())?;
//! let account = StreamName::parse("bank/account-17")?;
//! let deposit = Update::new("deposit-7f3a", Record::new("+100"))?;
//! let first = writer.write(account.clone(), deposit.clone()).await?;
//! let again = writer.write(account, deposit).await?; // here, or in another process
//! assert_eq!(first.at, again.at);
//! assert!(again.duplicate);
//! writer.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Batching by key
//! A [`KeyedBatcher`] does the first half of that for any function: inputs of a key gather while
//! the batch before them runs, keys take turns, and what waits is bounded.
//! ```
//! use nova_client::{BatchError, KeyedBatcher, KeyedConfig};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = KeyedConfig { queueing_max: 1000, ..KeyedConfig::default() };
//! let lengths = KeyedBatcher::new(config, |_user: u32, names: Vec<&'static str>| async move {
//!     Ok::<_, BatchError<()>>(names.iter().map(|name| name.len()).collect())
//! })?;
//! assert_eq!(lengths.submit(7, "seven").await, Ok(5));
//! lengths.close().await;
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
mod change;
mod client;
mod config;
pub mod core;
mod driver;
mod entity_writer;
mod error;
mod keyed_batcher;
mod producer;
mod read_stream;
mod reader;
mod settle;
mod star;
mod ticket;

pub use crate::core::cursor::ReadBatch;
pub use crate::core::fenced::outcome::{Applied, UpdateError};
pub use crate::core::fenced::update::{UPDATE_ID_HEADER, Update};
pub use crate::core::keyed::KeyedConfig;
pub use crate::core::{Ambiguity, Appended, HandshakeFailure, HandshakeProblem};
pub use admin::{Leader, Listed, Placement, Rebalanced};
pub use client::{AppendOnce, Client};
pub use config::{Authorities, ClientConfig, ProducerConfig};
pub use entity_writer::{EntityWriter, EntityWriterConfig, UpdateTicket};
pub use error::{ClientError, ConfigError};
pub use keyed_batcher::{BatchError, KeyedBatcher, Submitted};
pub use nova_model::request::{
    BucketInfo, CoreSet, CoreStatus, Page, ReadLimits, ReadOpen, ReadStart, StarInfo, StarStatus,
    StreamInfo, StreamMove,
};
pub use nova_model::settings::{BucketChange, BucketSettings, ProducerPolicy, StreamSettings};
pub use nova_model::{
    BucketName, Code, Conditions, CoreId, Epoch, Facts, FencingToken, Position, Record, Refusal,
    SequenceNumber, StreamName, Timestamp,
};
pub use producer::Producer;
pub use read_stream::ReadStream;
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
