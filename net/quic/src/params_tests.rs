//! Tests of the transport settings.

use super::*;

#[test]
fn a_batch_fits_one_udp_payload_for_every_mtu() {
    for mtu in MTU_MIN..=UDP_PAYLOAD_BYTES_MAX {
        let segments = segments_max(mtu);
        assert!(segments >= 1);
        assert!(segments * usize::from(mtu) <= usize::from(UDP_PAYLOAD_BYTES_MAX));
    }
    assert_eq!(segments_max(8_952), 7);
}

#[test]
fn defaults_pass_their_check() {
    ServerParams::new(64 * 1024 * 1024).check().unwrap();
    ClientParams::default().check().unwrap();
}

#[test]
fn each_contradiction_is_refused() {
    let good = ServerParams::new(64 * 1024 * 1024);
    type Spoil = fn(&mut ServerParams);
    let cases: [(&str, Spoil); 9] = [
        ("mtu under QUIC's", |p| p.transport.mtu_max = 1_199),
        ("mtu over UDP's", |p| p.transport.mtu_max = 65_508),
        ("window under two packets", |p| {
            p.transport.congestion_window_initial_bytes = 14_720
        }),
        ("tiny stream window", |p| {
            p.transport.stream_window_bytes = 1
        }),
        ("idle timeout", |p| {
            p.transport.idle_timeout = Duration::ZERO
        }),
        ("windows out of order", |p| {
            p.connection_window_bytes_max = p.connection_window_bytes_min - 1
        }),
        ("budget", |p| {
            p.windows_budget_bytes = 2 * u64::from(p.connection_window_bytes_min) - 1
        }),
        ("no connections", |p| p.connections_max = 0),
        ("no streams", |p| p.streams_max = 0),
    ];
    for (name, spoil) in cases {
        let mut params = good.clone();
        spoil(&mut params);
        assert!(params.check().is_err(), "{name} must be refused");
    }
    let mut client = ClientParams::default();
    client.keep_alive = client.transport.idle_timeout;
    assert!(matches!(client.check(), Err(ParamsError::KeepAlive { .. })));
}
