//! A peer that speaks QUIC and any bytes it likes.

use crate::in_time;
use bytes::Bytes;
use nova_e2e::home::Home;
use nova_model::request::{Ack, AppendOpen, AppendOpened, OneShotAppend, Request, SessionAppend};
use nova_model::{Code, EncodedBatch, Record, Refusal};
use nova_proto::client::{AppendEvent, AppendLane, ControlEvent, ControlLane};
use nova_quic::client::{ClientEndpoint, Connection, RecvStream, SendStream};
use nova_quic::error::{QuicError, ReadError};
use nova_quic::params::ClientParams;
use nova_quic::tls::ClientTls;
use std::path::Path;

/// A connection without a client behind it.
pub struct Raw {
    pub connection: Connection,
    _endpoint: ClientEndpoint,
}

/// A lane with its two directions.
pub struct RawLane {
    pub send: SendStream,
    pub recv: RecvStream,
}

/// A control lane.
pub struct RawControl {
    lane: RawLane,
    rules: ControlLane,
}

/// An append session.
pub struct RawSession {
    lane: RawLane,
    rules: AppendLane,
}

/// What a lane came to.
#[derive(Debug, PartialEq, Eq)]
pub enum LaneEnd {
    /// The star finished its direction in order.
    Finished,
    /// The star reset it with this code.
    Reset(u64),
    /// The connection was closed with this code.
    Closed(u64),
}

impl Raw {
    pub async fn connect(home: &Home, address: &str) -> Raw {
        Raw::trusting(&home.data().join("tls/ca.pem"), address).await
    }

    /// Connects to the first core of a star that sees a file system of its own.
    pub async fn inside(home: &Home, authorities: &Path) -> Raw {
        Raw::trusting(authorities, &format!("127.0.0.1:{}", home.port())).await
    }

    async fn trusting(authorities: &Path, address: &str) -> Raw {
        let tls = ClientTls::from_ca_file(authorities).expect("the star's own");
        let endpoint = ClientEndpoint::new(&tls, ClientParams::default()).expect("a socket");
        let address = address.parse().expect("an address");
        let connecting = endpoint.connect(address, "127.0.0.1");
        let connection = in_time("a connection", connecting)
            .await
            .expect("a connection");
        Raw {
            connection,
            _endpoint: endpoint,
        }
    }

    /// Connects to the first core of a home's star.
    pub async fn to(home: &Home) -> Raw {
        Raw::connect(home, &format!("127.0.0.1:{}", home.port())).await
    }

    pub async fn lane(&mut self) -> RawLane {
        let opened = in_time("a lane", self.connection.open_stream()).await;
        let (send, recv) = opened.expect("a lane");
        RawLane { send, recv }
    }

    pub async fn control(&mut self) -> RawControl {
        RawControl {
            lane: self.lane().await,
            rules: ControlLane::new(),
        }
    }

    /// An append session that was asked for; the answer is its first event.
    pub async fn ask_session(&mut self, open: AppendOpen) -> RawSession {
        RawSession {
            lane: self.lane().await,
            rules: AppendLane::new(open),
        }
    }

    /// An append session that is open.
    pub async fn session(&mut self, open: AppendOpen) -> (RawSession, AppendOpened) {
        let mut session = self.ask_session(open).await;
        match session.event().await {
            AppendEvent::Opened(opened) => (session, opened),
            event => panic!("not opened: {event:?}"),
        }
    }
}

impl RawSession {
    /// Queues a batch of one record; it leaves with the next wait for an event.
    pub fn send(&mut self, append: SessionAppend, body: &str) {
        let batch = EncodedBatch::encode(&[Record::new(body.to_owned())]).expect("a legal batch");
        self.rules.send(append, &batch);
    }

    /// Queues a `resume`.
    pub fn resume(&mut self) {
        self.rules.resume();
    }

    /// Writes what is queued and waits for the star's next word.
    pub async fn event(&mut self) -> AppendEvent {
        loop {
            while let Some(chunk) = self.rules.poll_output() {
                self.lane.write(chunk).await;
            }
            if let Some(event) = self.rules.poll_event() {
                return event;
            }
            let read = in_time("an answer", self.lane.recv.read_chunk()).await;
            let taken = match read.expect("the lane is fine") {
                Some(bytes) => self.rules.handle_bytes(bytes),
                None => self.rules.handle_end(),
            };
            taken.expect("the star keeps to the protocol");
        }
    }

    /// The ack that must come next.
    pub async fn acked(&mut self) -> Ack {
        match self.event().await {
            AppendEvent::Acked(ack) => ack,
            event => panic!("not acked: {event:?}"),
        }
    }

    /// The rejection with this code that must come next.
    pub async fn rejected(&mut self, code: Code) -> Refusal {
        match self.event().await {
            AppendEvent::Rejected(refusal) if refusal.code == code => refusal,
            event => panic!("not rejected as {code}: {event:?}"),
        }
    }

    /// The end with this code that must come next.
    pub async fn broken(&mut self, code: Code) -> Refusal {
        match self.event().await {
            AppendEvent::Broken(refusal) if refusal.code == code => refusal,
            event => panic!("not broken as {code}: {event:?}"),
        }
    }

    /// Ends the session in order: when this returns, the star has ended it too.
    pub async fn close(mut self) {
        self.rules.finish();
        self.lane.send.finish().expect("all was written");
        assert_eq!(self.event().await, AppendEvent::Ended);
    }
}

impl RawLane {
    /// Writes bytes; that the star has had enough is not noticed here.
    pub async fn write(&mut self, bytes: impl Into<Bytes>) {
        let _enough = in_time("a write", self.send.write_chunk(bytes.into())).await;
    }

    /// Reads to the end.
    pub async fn end(&mut self) -> LaneEnd {
        loop {
            match in_time("the end of a lane", self.recv.read_chunk()).await {
                Ok(Some(_)) => {}
                Ok(None) => return LaneEnd::Finished,
                Err(ReadError::Reset { code }) => return LaneEnd::Reset(code),
                Err(ReadError::Lost(QuicError::ClosedByPeer { code, .. })) => {
                    return LaneEnd::Closed(code);
                }
                Err(error) => panic!("not an end of the star: {error}"),
            }
        }
    }
}

impl RawControl {
    /// Asks and waits for the answer.
    pub async fn ask(&mut self, request: &Request) -> ControlEvent {
        self.rules.request(request);
        self.event().await
    }

    /// Asks all at once and waits for all answers.
    pub async fn ask_all(&mut self, requests: &[Request]) -> Vec<ControlEvent> {
        for request in requests {
            self.rules.request(request);
        }
        let mut answers = Vec::new();
        for _ in requests {
            answers.push(self.event().await);
        }
        answers
    }

    /// Appends a record without a session, once.
    pub async fn append_once(
        &mut self,
        append: &OneShotAppend,
        body: impl Into<Bytes>,
    ) -> Result<Ack, Refusal> {
        let batch = EncodedBatch::encode(&[Record::new(body)]).expect("a legal batch");
        self.rules.append_once(append, &batch);
        match self.event().await {
            ControlEvent::AppendedOnce(_, result) => result,
            event => panic!("an answer to something else: {event:?}"),
        }
    }

    async fn event(&mut self) -> ControlEvent {
        loop {
            while let Some(chunk) = self.rules.poll_output() {
                self.lane.write(chunk).await;
            }
            if let Some(event) = self.rules.poll_event() {
                return event;
            }
            let read = in_time("an answer", self.lane.recv.read_chunk()).await;
            let bytes = read
                .expect("the lane is fine")
                .expect("an answer comes before the end");
            self.rules
                .handle_bytes(bytes)
                .expect("the star keeps to the protocol");
        }
    }
}
