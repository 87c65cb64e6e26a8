//! Tests of what settings mean.

use super::*;
use crate::config::HttpConfig;

fn said(change: impl FnOnce(&mut ServeSettings)) -> ServeSettings {
    let mut settings = ServeSettings::default();
    change(&mut settings);
    settings
}

#[test]
fn all_defaults_are_explicit() {
    let expected = ServeConfig {
        data: "./nova-data".into(),
        listen: "127.0.0.1".parse().unwrap(),
        port: 7400,
        advertise: None,
        cores: None,
        segment_bytes: 256 << 20,
        floor_bytes: None,
        allow_corrupt: false,
        sync: SyncMode::Dsync,
        recent_bytes: 64 << 20,
        ingress_bytes: 64 << 20,
        idle_us: 30_000_000,
        tls_names: Vec::new(),
        http: Some(HttpConfig {
            listen: "127.0.0.1:7380".parse().unwrap(),
            is_plain: true,
        }),
        http_allow_origins: Vec::new(),
        spin_us: 50,
    };
    assert_eq!(resolve(ServeSettings::default()), Ok(expected));
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let flags = said(|s| s.port = Some(1));
    let file = said(|s| {
        s.port = Some(2);
        s.cores = Some(3);
    });
    let config = resolve(flags.or(file)).unwrap();
    assert_eq!((config.port, config.cores), (1, Some(3)));
    assert_eq!(config.segment_bytes, SEGMENT_BYTES_DEFAULT);
}

#[test]
fn what_is_out_of_range_is_refused_by_name() {
    type Change = fn(&mut ServeSettings);
    let cases: [(&str, Change); 22] = [
        ("listen", |s| s.listen = "0.0.0.0".parse().ok()),
        ("listen", |s| s.listen = "::".parse().ok()),
        ("advertise", |s| s.advertise = Some(String::new())),
        ("advertise", |s| s.advertise = Some("star:7400".to_owned())),
        ("advertise", |s| s.advertise = Some("a b".to_owned())),
        ("advertise", |s| s.advertise = Some("[::1]:7400".to_owned())),
        ("advertise", |s| s.advertise = Some("[::1".to_owned())),
        ("advertise", |s| s.advertise = Some("[10.0.0.7]".to_owned())),
        ("advertise", |s| {
            s.advertise = Some("fe80::7%eth0".to_owned())
        }),
        ("cores", |s| s.cores = Some(0)),
        ("cores", |s| s.cores = Some(STAR_CORES_MAX + 1)),
        ("port", |s| {
            s.port = Some(65_535);
            s.cores = Some(2);
        }),
        ("segment-bytes", |s| s.segment_bytes = Some(1 << 20)),
        ("segment-bytes", |s| s.segment_bytes = Some(4 << 30)),
        ("segment-bytes", |s| s.segment_bytes = Some((16 << 20) + 1)),
        ("ingress-bytes", |s| s.ingress_bytes = Some(1 << 20)),
        ("spin-us", |s| s.spin_us = Some(1_001)),
        ("idle-timeout", |s| {
            s.idle_timeout = Some(Duration::from_millis(999));
        }),
        ("idle-timeout", |s| s.idle_timeout = Some(Duration::MAX)),
        ("tls-names", |s| s.tls_names = Some(vec![String::new()])),
        ("tls-names", |s| {
            s.tls_names = Some((0..65).map(|n| n.to_string()).collect());
        }),
        ("advertise", |s| s.advertise = Some("a".repeat(254))),
    ];
    for (setting, change) in cases {
        let refused = resolve(said(change)).unwrap_err();
        assert_eq!(refused.setting, setting, "{refused}");
    }
}

#[test]
fn what_is_at_the_edge_of_its_range_is_taken() {
    type Change = fn(&mut ServeSettings);
    let cases: [Change; 8] = [
        |s| s.segment_bytes = Some(SEGMENT_BYTES_MIN),
        |s| s.segment_bytes = Some(SEGMENT_BYTES_MAX / 4096 * 4096),
        |s| s.cores = Some(STAR_CORES_MAX),
        |s| {
            s.port = Some(65_535);
            s.cores = Some(1);
        },
        |s| {
            s.port = Some(0);
            s.cores = Some(STAR_CORES_MAX);
        },
        |s| s.recent_bytes = Some(0),
        |s| s.idle_timeout = Some(Duration::from_secs(1)),
        |s| s.idle_timeout = Some(Duration::from_secs(86_400)),
    ];
    for change in cases {
        assert!(resolve(said(change)).is_ok());
    }
}

#[test]
fn the_certificate_holds_the_hosts_that_clients_dial() {
    let names = |change: fn(&mut ServeSettings)| resolve(said(change)).unwrap().tls_names;
    assert_eq!(names(|s| s.listen = "::1".parse().ok()), [""; 0]);
    assert_eq!(names(|s| s.listen = "10.0.0.7".parse().ok()), ["10.0.0.7"]);
    let both = names(|s| {
        s.listen = "0.0.0.0".parse().ok();
        s.advertise = Some("star.example".to_owned());
        s.tls_names = Some(vec!["b".to_owned(), "star.example".to_owned()]);
    });
    assert_eq!(both, ["b", "star.example"]);
}

#[test]
fn an_ipv6_address_is_advertised_with_or_without_brackets() {
    for said_as in ["2001:db8::7", "[2001:db8::7]", "[2001:DB8:0::7]"] {
        let config = resolve(said(|s| s.advertise = Some(said_as.to_owned()))).unwrap();
        let told = config
            .advertise
            .as_deref()
            .map(|host| told_address(host, 7400));
        assert_eq!(told.as_deref(), Some("[2001:db8::7]:7400"), "{said_as}");
        assert_eq!(config.tls_names, ["2001:db8::7"]);
    }
    assert_eq!(told_address("10.0.0.7", 1), "10.0.0.7:1");
    assert_eq!(told_address("star.example", 1), "star.example:1");
}

#[test]
fn a_refusal_says_the_setting_its_value_and_the_rule() {
    let refused = resolve(said(|s| s.cores = Some(0))).unwrap_err();
    assert_eq!(refused.to_string(), "cores is 0, and it is 1 to 256");
}
