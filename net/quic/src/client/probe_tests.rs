//! When a peer is probed, and with what.

use std::net::{Ipv4Addr, SocketAddr};

use super::*;

const SHORT: u8 = 0x40;

struct Rig {
    now: Instant,
    probes: Probes,
}

impl Rig {
    fn new() -> Rig {
        let (now, probes) = (Instant::now(), Probes::default());
        Rig { now, probes }
    }

    /// So many datagrams of this size, each with this first byte.
    fn send(&mut self, first: u8, size: usize, count: usize, late: bool) {
        let datagram = [&[first][..], &vec![count as u8; size - 1]].concat();
        let transmit = Transmit {
            destination: SocketAddr::from((Ipv4Addr::LOCALHOST, 7)),
            ecn: None,
            size: size * count,
            segment_size: (count > 1).then_some(size),
            src_ip: None,
        };
        let bytes = datagram.repeat(count);
        self.probes.note_sent(self.now, &transmit, &bytes, late);
    }

    /// Goes to when the next probe is due, and gives how long that took, and the probe.
    fn probe(&mut self) -> (Duration, Vec<u8>) {
        let due = self.probes.due().expect("one is due");
        let waited = due - self.now;
        let early = due - Duration::from_nanos(1);
        assert!(self.probes.next(early).is_none(), "before its time");
        self.now = due;
        let (transmit, bytes) = self.probes.next(due).expect("it is due");
        assert_eq!((transmit.size, transmit.segment_size), (bytes.len(), None));
        (waited, bytes.to_vec())
    }
}

#[test]
fn a_peer_that_does_not_answer_a_repetition_is_probed_until_it_is_heard() {
    let mut rig = Rig::new();
    rig.send(SHORT, 1_000, 1, false);
    assert_eq!(rig.probes.due(), None, "there was time for an answer");
    rig.send(SHORT, 1_200, 3, true);
    let beginning = [&[SHORT][..], &[3; PROBE_BYTES - 1]].concat();
    for _ in 0..=PROBES_QUICK {
        assert_eq!(rig.probe(), (PACE, beginning.clone()));
    }
    let slow: Vec<Duration> = (0..6).map(|_| rig.probe().0).collect();
    assert_eq!(slow[..2], [PACE * 2, PACE * 4]);
    assert_eq!(slow[4..], [PACE_MAX, PACE_MAX]);

    rig.probes.stop();
    assert_eq!(rig.probes.due(), None);
    rig.send(SHORT, 1_000, 1, true);
    assert_eq!(rig.probes.due(), None, "the first since it was heard");
    rig.send(SHORT, 29, 1, true);
    let whole = [&[SHORT][..], &[1; 28]].concat();
    assert_eq!(rig.probe(), (PACE, whole));
    // A further repetition changes the packet, not the time.
    rig.now += PACE / 2;
    rig.send(SHORT, 30, 1, true);
    assert_eq!(rig.probe().0, PACE / 2);
}

#[test]
fn who_answers_and_handshakes_are_not_probed() {
    let mut rig = Rig::new();
    for _ in 0..2 {
        // What leaves late behind something heard acknowledges it.
        rig.send(SHORT, 100, 1, true);
        rig.probes.stop();
    }
    rig.send(SHORT | LONG_HEADER, 1_200, 1, false);
    rig.send(SHORT | LONG_HEADER, 1_200, 1, true);
    assert_eq!(rig.probes.due(), None);
}
