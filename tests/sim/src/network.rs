//! Ordered byte streams that are slow, cut bytes anywhere, and break.
//!
//! ```text
//!   send --> [on the way] --Arrival--> [arrived] --take--> the other side
//! ```
//! A broken link takes nothing more; what is on its way still arrives until the receiving side
//! learns of the loss, each side at its own time.
//!
//! # Invariants
//! - Pieces arrive in order and none twice.
//! - At most [`WAY_BYTES_MAX`] and one piece are in a way; a sender asks for room before.

use crate::agenda::{Agenda, Happening};
use crate::rng::Rng;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Names a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub u64);

/// A direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the client to the star.
    Up,
    /// From the star to the client.
    Down,
}

/// An end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The client's.
    Client,
    /// The star's.
    Star,
}

/// What travels.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Bytes.
    Bytes(Bytes),
    /// The sender has finished.
    End,
}

/// Bytes of one way that are sent and not taken.
pub const WAY_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Default)]
struct Stretch {
    on_way: VecDeque<Piece>,
    arrived: VecDeque<Piece>,
    bytes: usize,
    last_due: u64,
    is_waited_for: bool,
}

#[derive(Debug)]
struct Link {
    client: usize,
    core: u16,
    up: Stretch,
    down: Stretch,
    is_broken: bool,
    client_gone: bool,
    star_gone: bool,
}

/// All links.
#[derive(Debug)]
pub struct Network {
    links: BTreeMap<LinkId, Link>,
    last: u64,
    rng: Rng,
    /// The longest time on the way of a usual piece.
    pub delay_us_max: u64,
}

impl Network {
    /// A network without links.
    pub fn new(rng: Rng, delay_us_max: u64) -> Network {
        Network {
            links: BTreeMap::new(),
            last: 0,
            rng,
            delay_us_max,
        }
    }

    /// A client connects to a core; a star that is down refuses after a while.
    pub fn open(&mut self, agenda: &mut Agenda, client: usize, core: u16, is_up: bool) -> LinkId {
        self.last += 1;
        let id = LinkId(self.last);
        self.links.insert(
            id,
            Link {
                client,
                core,
                up: Stretch::default(),
                down: Stretch::default(),
                is_broken: !is_up,
                client_gone: false,
                star_gone: !is_up,
            },
        );
        if !is_up {
            let wait = self.rng.between(100, 20_000);
            agenda.after(wait, Happening::Lost(id, Side::Client));
        }
        id
    }

    /// The client and the core that a link joins.
    pub fn ends(&self, id: LinkId) -> Option<(usize, u16)> {
        self.links.get(&id).map(|link| (link.client, link.core))
    }

    /// The core that a link leads to, while the star knows the link.
    pub fn star_end(&self, id: LinkId) -> Option<u16> {
        let link = self.links.get(&id)?;
        (!link.star_gone).then_some(link.core)
    }

    /// Links that are not broken.
    pub fn unbroken(&self) -> Vec<LinkId> {
        let whole = self.links.iter().filter(|(_, link)| !link.is_broken);
        whole.map(|(id, _)| *id).collect()
    }

    /// Whether the sender may send more; if not, it is noted that it waits.
    pub fn has_room(&mut self, id: LinkId, way: Way) -> bool {
        let Some(link) = self.links.get_mut(&id) else {
            return false;
        };
        let stretch = link.stretch_mut(way);
        let has_room = stretch.bytes < WAY_BYTES_MAX;
        stretch.is_waited_for |= !has_room;
        has_room
    }

    /// Whether a sender that waited has room now; it is told once.
    pub fn has_room_again(&mut self, id: LinkId, way: Way) -> bool {
        let Some(link) = self.links.get_mut(&id) else {
            return false;
        };
        let stretch = link.stretch_mut(way);
        let is_told = stretch.is_waited_for && stretch.bytes < WAY_BYTES_MAX;
        stretch.is_waited_for &= !is_told;
        is_told
    }

    /// Sends a piece; on a broken link it is lost.
    pub fn send(&mut self, agenda: &mut Agenda, id: LinkId, way: Way, piece: Piece) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        if link.is_broken {
            return;
        }
        let mut pieces = vec![piece];
        if let Piece::Bytes(bytes) = &mut pieces[0]
            && bytes.len() > 1
            && self.rng.chance(15)
        {
            let rest = bytes.split_off(self.rng.between(1, bytes.len() as u64 - 1) as usize);
            pieces.push(Piece::Bytes(rest));
        }
        let stretch = link.stretch_mut(way);
        for piece in pieces {
            let mut delay = self.rng.between(5, self.delay_us_max);
            if self.rng.chance(2) {
                delay *= 20;
            }
            let due = stretch.last_due.max(agenda.now() + delay);
            stretch.last_due = due;
            if let Piece::Bytes(bytes) = &piece {
                stretch.bytes += bytes.len();
            }
            stretch.on_way.push_back(piece);
            agenda.at(due, Happening::Arrival(id, way));
        }
    }

    /// The next piece on the way arrives.
    pub fn arrive(&mut self, id: LinkId, way: Way) {
        if let Some(link) = self.links.get_mut(&id) {
            let stretch = link.stretch_mut(way);
            if let Some(piece) = stretch.on_way.pop_front() {
                stretch.arrived.push_back(piece);
            }
        }
    }

    /// Takes what has arrived.
    pub fn take(&mut self, id: LinkId, way: Way) -> Option<Piece> {
        let stretch = self.links.get_mut(&id)?.stretch_mut(way);
        let piece = stretch.arrived.pop_front()?;
        if let Piece::Bytes(bytes) = &piece {
            stretch.bytes -= bytes.len();
        }
        Some(piece)
    }

    /// The link breaks; both sides learn it, each in its time.
    pub fn cut(&mut self, agenda: &mut Agenda, id: LinkId) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        if std::mem::replace(&mut link.is_broken, true) {
            return;
        }
        for side in [Side::Client, Side::Star] {
            let wait = self.rng.between(10, 60_000);
            agenda.after(wait, Happening::Lost(id, side));
        }
    }

    /// The star's process is gone and all links with it.
    pub fn star_is_gone(&mut self, agenda: &mut Agenda) {
        for (id, link) in &mut self.links {
            let was_broken = std::mem::replace(&mut link.is_broken, true);
            link.star_gone = true;
            if !was_broken {
                let wait = self.rng.between(10, 60_000);
                agenda.after(wait, Happening::Lost(*id, Side::Client));
            }
        }
        self.forget();
    }

    /// A side has dropped the link, or has learned that it is broken.
    pub fn leave(&mut self, agenda: &mut Agenda, id: LinkId, side: Side) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        match side {
            Side::Client => link.client_gone = true,
            Side::Star => link.star_gone = true,
        }
        if !std::mem::replace(&mut link.is_broken, true) {
            let other = match side {
                Side::Client => Side::Star,
                Side::Star => Side::Client,
            };
            let wait = self.rng.between(10, 5_000).max(self.delay_us_max);
            let due = link.up.last_due.max(link.down.last_due);
            agenda.at(due.max(agenda.now() + wait), Happening::Lost(id, other));
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.links
            .retain(|_, link| !(link.client_gone && link.star_gone));
    }
}

impl Link {
    fn stretch_mut(&mut self, way: Way) -> &mut Stretch {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }
}
