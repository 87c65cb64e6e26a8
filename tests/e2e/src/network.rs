//! A network between clients and a star: one hop for datagrams that can be bad in many ways.
//!
//! ```text
//!   client --> front ----> lost? doubled? damaged? too large? cut? held back --> back --> star
//!   client <-------- held back <-- the same ------------------------------------ back <-- star
//!                                                                  (one for each client)
//! ```
//! A datagram that is held back for another time than the one before it overtakes or is overtaken.
//! What fits no more into what is held is lost, as in a router.
//!
//! # Invariants
//! - The star sees each client at an address of its own, as behind a NAT; [`Hop::rebind`] gives all
//!   clients new ones.
//! - What happens to datagrams follows from the seed and from their order.
//! - Nothing sleeps: the thread waits for datagrams, or for the next one that is due.

use crate::chance::Chance;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Largest datagram of UDP over IPv4, and some.
const DATAGRAM_BYTES_MAX: usize = 64 * 1024;
/// Datagrams that are held back at a time.
const HELD_MAX: usize = 8192;
/// Clients that are told apart.
const CLIENTS_MAX: usize = 1024;
/// How late the thread may notice that it is over.
const LOOK: Duration = Duration::from_millis(20);

/// What the network does to datagrams, of either direction.
#[derive(Debug, Clone)]
pub struct Weather {
    /// Of 1,000, so many are lost.
    pub lost: u64,
    /// Of 1,000, so many come twice.
    pub doubled: u64,
    /// Of 1,000, one bit of so many is turned.
    pub damaged: u64,
    /// How long each is held back, in microseconds.
    pub delay_us: Range<u64>,
    /// Larger ones are lost.
    pub bytes_max: usize,
}

impl Weather {
    /// Every datagram passes at once.
    pub fn fair() -> Weather {
        Weather {
            lost: 0,
            doubled: 0,
            damaged: 0,
            delay_us: 0..1,
            bytes_max: DATAGRAM_BYTES_MAX,
        }
    }
}

/// Where datagrams are cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    /// What clients send.
    pub to_star: bool,
    /// What the star sends.
    pub to_clients: bool,
}

/// What has happened to datagrams so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Came out.
    pub passed: u64,
    /// Lost by chance, for want of room, or with an address.
    pub lost: u64,
    /// Came out twice.
    pub doubled: u64,
    /// Came out with another bit.
    pub damaged: u64,
    /// Too large.
    pub too_large: u64,
    /// Came out behind a younger one of the same direction.
    pub overtaken: u64,
    /// Cut off on their way to the star.
    pub cut_to_star: u64,
    /// Cut off on their way to clients.
    pub cut_to_clients: u64,
    /// Packets with which clients begin a connection (RFC 9000, section 17.2.2), as they came in.
    pub initials: u64,
    /// How often all clients got new addresses.
    pub rebinds: u64,
}

/// What the test decides.
#[derive(Debug)]
struct Orders {
    weather: Weather,
    cut: Cut,
    rebinds: u64,
    is_over: bool,
}

/// The hop. Dropped, it is gone.
#[derive(Debug)]
pub struct Hop {
    port: u16,
    orders: Arc<Mutex<Orders>>,
    counts: watch::Receiver<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl Hop {
    /// A hop before the star at this port of the loopback, in fair weather.
    pub fn start(star: u16, seed: u64) -> Hop {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        front.set_nonblocking(true).expect("a socket");
        let port = front.local_addr().expect("a bound socket").port();
        let orders = Arc::new(Mutex::new(Orders {
            weather: Weather::fair(),
            cut: Cut::default(),
            rebinds: 0,
            is_over: false,
        }));
        let (tell, counts) = watch::channel(Counts::default());
        let forwarder = Forwarder {
            star: (Ipv4Addr::LOCALHOST, star).into(),
            front,
            clients: HashMap::new(),
            held: BTreeMap::new(),
            next: 0,
            last_out: [0; 2],
            chance: Chance(seed),
            counts: Counts::default(),
        };
        let theirs = Arc::clone(&orders);
        let thread = std::thread::spawn(move || forwarder.run(&theirs, &tell));
        Hop {
            port,
            orders,
            counts,
            thread: Some(thread),
        }
    }

    /// Where clients dial.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on this weather.
    pub fn set_weather(&self, weather: Weather) {
        self.orders.lock().expect("no panic").weather = weather;
    }

    /// From now on this is cut off.
    pub fn set_cut(&self, cut: Cut) {
        self.orders.lock().expect("no panic").cut = cut;
    }

    /// All clients have new addresses, as the star sees them; the old ones reach nobody any more.
    pub async fn rebind(&self) {
        let rebinds = {
            let mut orders = self.orders.lock().expect("no panic");
            orders.rebinds += 1;
            orders.rebinds
        };
        self.until(|counts| counts.rebinds >= rebinds).await;
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// Waits until enough has happened.
    pub async fn until(&self, is_enough: impl FnMut(&Counts) -> bool) {
        let mut counts = self.counts.clone();
        let waited = counts.wait_for(is_enough).await;
        waited.expect("the hop is there as long as this");
    }
}

impl Drop for Hop {
    fn drop(&mut self) {
        if let Ok(mut orders) = self.orders.lock() {
            orders.is_over = true;
        }
        if let Some(thread) = self.thread.take() {
            // Its panic has been printed, and a test that has failed already says why.
            let _ended = thread.join();
        }
    }
}

/// Where a datagram goes.
#[derive(Debug, Clone, Copy)]
enum Way {
    ToStar,
    ToClient,
}

/// A datagram that is held back.
#[derive(Debug)]
struct Held {
    number: u64,
    client: SocketAddr,
    way: Way,
    bytes: Vec<u8>,
}

/// What the thread has.
struct Forwarder {
    star: SocketAddr,
    front: UdpSocket,
    /// For each client the socket that stands for it.
    clients: HashMap<SocketAddr, UdpSocket>,
    held: BTreeMap<(Instant, u64), Held>,
    next: u64,
    /// Number of the datagram that came out last, for each way.
    last_out: [u64; 2],
    chance: Chance,
    counts: Counts,
}

impl Forwarder {
    fn run(mut self, orders: &Mutex<Orders>, tell: &watch::Sender<Counts>) {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            let (weather, cut) = {
                let orders = orders.lock().expect("no panic");
                if orders.is_over {
                    return;
                }
                if self.counts.rebinds != orders.rebinds {
                    self.counts.rebinds = orders.rebinds;
                    self.clients.clear();
                }
                (orders.weather.clone(), orders.cut)
            };
            self.take(&mut buffer, &weather, cut);
            self.release();
            tell.send_replace(self.counts);
            self.wait();
        }
    }

    /// Takes all that has come.
    fn take(&mut self, buffer: &mut [u8], weather: &Weather, cut: Cut) {
        while let Ok((length, client)) = self.front.recv_from(buffer) {
            let bytes = &buffer[..length];
            let is_initial = bytes.first().is_some_and(|first| first & 0xf0 == 0xc0);
            self.counts.initials += u64::from(is_initial);
            self.know(client);
            if cut.to_star {
                self.counts.cut_to_star += 1;
            } else {
                self.hold(client, Way::ToStar, bytes, weather);
            }
        }
        let clients: Vec<SocketAddr> = self.clients.keys().copied().collect();
        for client in clients {
            // An error tells of a star that is down: nothing came.
            while let Ok(length) = self.clients[&client].recv(buffer) {
                if cut.to_clients {
                    self.counts.cut_to_clients += 1;
                } else {
                    self.hold(client, Way::ToClient, &buffer[..length], weather);
                }
            }
        }
    }

    /// Makes the socket that stands for a client.
    fn know(&mut self, client: SocketAddr) {
        if self.clients.contains_key(&client) {
            return;
        }
        assert!(
            self.clients.len() < CLIENTS_MAX,
            "more clients than a test has"
        );
        let back = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        back.connect(self.star).expect("an address of the loopback");
        back.set_nonblocking(true).expect("a socket");
        self.clients.insert(client, back);
    }

    /// Decides what becomes of a datagram.
    fn hold(&mut self, client: SocketAddr, way: Way, bytes: &[u8], weather: &Weather) {
        if bytes.len() > weather.bytes_max {
            self.counts.too_large += 1;
            return;
        }
        if self.chance.hits(weather.lost, 1000) {
            self.counts.lost += 1;
            return;
        }
        let mut bytes = bytes.to_vec();
        if self.chance.hits(weather.damaged, 1000) && !bytes.is_empty() {
            let bit = self.chance.below(8 * bytes.len() as u64);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            self.counts.damaged += 1;
        }
        if self.chance.hits(weather.doubled, 1000) {
            self.counts.doubled += 1;
            self.put(client, way, bytes.clone(), weather);
        }
        self.put(client, way, bytes, weather);
    }

    fn put(&mut self, client: SocketAddr, way: Way, bytes: Vec<u8>, weather: &Weather) {
        if self.held.len() >= HELD_MAX {
            self.counts.lost += 1;
            return;
        }
        let Range { start, end } = weather.delay_us;
        let delay = Duration::from_micros(start + self.chance.below(end - start));
        self.next += 1;
        let held = Held {
            number: self.next,
            client,
            way,
            bytes,
        };
        self.held.insert((Instant::now() + delay, self.next), held);
    }

    /// Lets out what is due.
    fn release(&mut self) {
        let now = Instant::now();
        while let Some(first) = self.held.first_entry()
            && first.key().0 <= now
        {
            let held = first.remove();
            let last = &mut self.last_out[held.way as usize];
            self.counts.overtaken += u64::from(held.number < *last);
            *last = held.number.max(*last);
            let sent = match held.way {
                Way::ToClient => Some(self.front.send_to(&held.bytes, held.client)),
                Way::ToStar => {
                    let back = self.clients.get(&held.client);
                    back.map(|back| back.send(&held.bytes))
                }
            };
            // A full socket, a star that is down, or an address that is no more: lost.
            match sent {
                Some(Ok(_)) => self.counts.passed += 1,
                Some(Err(_)) | None => self.counts.lost += 1,
            }
        }
    }

    /// Waits for a datagram, or until one is due.
    fn wait(&self) {
        let due = self.held.first_key_value().map(|((due, _), _)| *due);
        let until_due = due.map(|due| due.saturating_duration_since(Instant::now()));
        let time = until_due.map_or(LOOK, |time| time.min(LOOK));
        let sockets = self.clients.values().chain([&self.front]);
        let mut ready: Vec<PollFd<'_>> = sockets
            .map(|socket| PollFd::new(socket, PollFlags::IN))
            .collect();
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: time.subsec_nanos().into(),
        };
        // Interrupted, it looks a little sooner.
        let _looked = poll(&mut ready, Some(&time));
    }
}
