//! The client: the way into a star.

use crate::config::{Authorities, ClientConfig, ProducerConfig};
use crate::core::Appended;
use crate::driver::control::Controls;
use crate::driver::dialer::Dialer;
use crate::driver::holders::Holders;
use crate::driver::source::Source;
use crate::error::{ClientError, ConfigError};
use crate::producer::Producer;
use crate::reader::Reader;
use crate::star::Star;
use nova_model::request::{OneShotAppend, ReadOpen};
use nova_model::{Conditions, EncodedBatch, Record, StreamId, StreamName, WriterStamp};
use nova_quic::client::ClientEndpoint;
use std::sync::Arc;

/// A client of one star. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) star: Arc<Star>,
}

/// What goes with a one-shot append.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppendOnce {
    /// The token and the position that must hold.
    pub conditions: Conditions,
    /// The incarnation that the stream must be.
    pub stream_id: Option<StreamId>,
    /// The caller's own number for the batch. With it, the append is tried again when its outcome
    /// is not known, since a repeat is recognised. Number the batches of a writer from 0 without
    /// gaps; a new writer for each append would push other writers out of the star's memory.
    pub writer: Option<WriterStamp>,
}

impl Client {
    /// Makes a client. The star is dialled with the first call that needs it, so this fails only
    /// for its own configuration. To be called inside a tokio runtime with IO and time.
    pub fn connect(config: ClientConfig) -> Result<Client, ClientError> {
        let tls = config.tls()?;
        let (retry_budget_us, silence_us_max) = (config.retry_budget_us(), config.silence_us_max());
        let transport = config.transport();
        let authorities = match config.authorities {
            Authorities::File(path) => Some(path),
            Authorities::Pem(_) => None,
        };
        let endpoint = ClientEndpoint::new(&tls, transport);
        let endpoint = endpoint.map_err(|error| ConfigError::Socket(Arc::new(error)))?;
        let star = Star {
            address: config.star,
            retry_budget_us,
            silence_us_max,
            source: Source::new()?,
            dialer: Dialer::new(endpoint, config.server_name, authorities),
            holders: Holders::default(),
            controls: Controls::default(),
        };
        Ok(Client {
            star: Arc::new(star),
        })
    }

    /// A producer for a stream. Its session is opened in the background.
    pub fn producer(
        &self,
        stream: StreamName,
        config: ProducerConfig,
    ) -> Result<Producer, ClientError> {
        Producer::begin(Arc::clone(&self.star), stream, config)
    }

    /// Opens a read of a stream.
    pub async fn read(&self, open: ReadOpen) -> Result<Reader, ClientError> {
        Reader::open(Arc::clone(&self.star), open).await
    }

    /// Appends one batch without a session: one request, one durable result.
    ///
    /// Without a writer's number, an append whose answer is lost is [`ClientError::Ambiguous`].
    pub async fn append_once(
        &self,
        stream: StreamName,
        records: &[Record],
        with: AppendOnce,
    ) -> Result<Appended, ClientError> {
        let batch = EncodedBatch::encode(records)?;
        let AppendOnce {
            conditions,
            stream_id,
            writer,
        } = with;
        let append = OneShotAppend {
            stream,
            stream_id,
            conditions,
            writer,
        };
        append.check()?;
        let ack = self.star.append_once(append, batch).await?;
        Ok(Appended {
            start: ack.start,
            end: ack.end,
            tail: ack.tail,
            duplicate: ack.duplicate,
            times: ack.times,
        })
    }

    /// How often the star named another address than the one that was asked: what a first open, or
    /// a move of a stream, costs beside its work.
    pub fn redirects(&self) -> u64 {
        self.star.holders.redirects()
    }

    /// Closes all connections of the client and its clones, and waits, at most half a second,
    /// until the star knows.
    /// Producers are closed before: what they have under way is lost otherwise, and says so.
    pub async fn close(self) {
        self.star.dialer.close().await;
    }
}
