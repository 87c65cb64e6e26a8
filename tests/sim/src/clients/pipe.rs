//! A client's end of a lane on a link.

use super::Surroundings;
use crate::agenda::Happening;
use crate::network::{LinkId, Piece, Side, Way};
use bytes::Bytes;
use nova_proto::ProtocolError;
use nova_proto::client::{AppendLane, ControlLane, ReadLane};

/// What the three kinds of lanes have in common.
pub(super) trait Lane {
    fn handle_bytes(&mut self, bytes: Bytes) -> Result<(), ProtocolError>;
    fn handle_end(&mut self) -> Result<(), ProtocolError>;
    fn poll_output(&mut self) -> Option<Bytes>;
    fn wants_finish(&self) -> bool;
    fn wants_input(&self) -> bool;
}

macro_rules! lane {
    ($name:ty, $lane:ident => $wants_input:expr) => {
        impl Lane for $name {
            fn handle_bytes(&mut self, bytes: Bytes) -> Result<(), ProtocolError> {
                self.handle_bytes(bytes)
            }
            fn handle_end(&mut self) -> Result<(), ProtocolError> {
                self.handle_end()
            }
            fn poll_output(&mut self) -> Option<Bytes> {
                self.poll_output()
            }
            fn wants_finish(&self) -> bool {
                self.wants_finish()
            }
            fn wants_input(&self) -> bool {
                let $lane = self;
                $wants_input
            }
        }
    };
}

lane!(AppendLane, _lane => true);
lane!(ControlLane, _lane => true);
lane!(ReadLane, lane => lane.wants_input());

/// A lane and its link.
#[derive(Debug)]
pub(super) struct Pipe<L> {
    pub(super) link: LinkId,
    pub(super) lane: L,
    /// Nothing more comes.
    pub(super) is_ended: bool,
    is_finished: bool,
}

impl<L: Lane> Pipe<L> {
    pub(super) fn open(around: &mut Surroundings<'_>, core: u16, lane: L) -> Pipe<L> {
        let is_up = core < around.cores;
        let link = around.network.open(around.agenda, around.me, core, is_up);
        around.say(|| format!("opens {link:?} to core-{core}"));
        let mut pipe = Pipe {
            link,
            lane,
            is_ended: false,
            is_finished: false,
        };
        pipe.flush(around);
        pipe
    }

    /// Takes what has arrived.
    pub(super) fn receive(&mut self, around: &mut Surroundings<'_>) {
        while self.lane.wants_input()
            && let Some(piece) = around.network.take(self.link, Way::Down)
        {
            let taken = match piece {
                Piece::Bytes(bytes) => self.lane.handle_bytes(bytes),
                Piece::End => {
                    self.is_ended = true;
                    self.lane.handle_end()
                }
            };
            if let Err(error) = taken {
                let link = self.link;
                let text = format!("the star broke the protocol on {link:?}: {error}");
                around.oracle.found(text);
                self.is_ended = true;
            }
        }
        if around.network.has_room_again(self.link, Way::Down) {
            around.agenda.after(0, Happening::Room(self.link));
        }
    }

    /// Writes what the lane has to say.
    pub(super) fn flush(&mut self, around: &mut Surroundings<'_>) {
        while around.network.has_room(self.link, Way::Up)
            && let Some(chunk) = self.lane.poll_output()
        {
            let piece = Piece::Bytes(chunk);
            around
                .network
                .send(around.agenda, self.link, Way::Up, piece);
        }
        if self.lane.wants_finish() && !self.is_finished {
            self.is_finished = true;
            around
                .network
                .send(around.agenda, self.link, Way::Up, Piece::End);
        }
    }

    /// Drops the link.
    pub(super) fn leave(self, around: &mut Surroundings<'_>) {
        around.network.leave(around.agenda, self.link, Side::Client);
    }
}
