//! Tests of how a star is found.

use super::*;

#[test]
fn addresses_are_host_and_port() {
    for good in [
        "localhost:7400",
        "10.0.0.1:1",
        "[::1]:65535",
        "star.example:80",
    ] {
        assert_eq!(parse_address(good), Ok(good.to_owned()));
    }
    for bad in [
        "",
        "localhost",
        ":7400",
        "localhost:",
        "localhost:0",
        "a:70000",
        "::1:7400",
    ] {
        assert!(parse_address(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_data_directory_tells_address_and_authority() {
    let data = tempfile::tempdir().unwrap();
    let entry = Entry::of_data(data.path());
    std::fs::write(data.path().join("address"), "127.0.0.1:7400\n").unwrap();
    let config = entry.config().unwrap();
    assert_eq!(config.star, "127.0.0.1:7400");
    let ca = nova_client::Authorities::File(data.path().join("tls/ca.pem"));
    assert_eq!(config.authorities, ca);
}

#[test]
fn a_directory_without_a_star_is_told_with_the_command_that_starts_one() {
    let data = tempfile::tempdir().unwrap();
    let failure = Entry::of_data(data.path()).config().unwrap_err();
    assert_eq!(failure.code(), 4);
    assert!(
        failure.next.contains("nova serve --data"),
        "{}",
        failure.next
    );
    std::fs::write(data.path().join("address"), "nonsense").unwrap();
    let failure = Entry::of_data(data.path()).config().unwrap_err();
    assert!(
        failure
            .why
            .ends_with("is damaged: 'nonsense' is not HOST:PORT")
    );
}

#[test]
fn a_star_elsewhere_needs_no_data_directory() {
    let entry = Entry {
        star: Some("star.example:7400".to_owned()),
        ca: Some("ca.pem".into()),
        server_name: Some("inside".to_owned()),
        ..Entry::of_data(Path::new("/nowhere"))
    };
    let flags = " --star star.example:7400 --ca ca.pem --server-name inside";
    assert_eq!(entry.flags(), flags);
    let config = entry.config().unwrap();
    assert_eq!(config.star, "star.example:7400");
    assert_eq!(config.server_name.as_deref(), Some("inside"));
}

#[test]
fn a_command_for_the_same_star_names_what_is_not_the_default() {
    assert_eq!(Entry::of_data(Path::new(DATA_DEFAULT)).flags(), "");
    assert_eq!(Entry::of_data(Path::new("d")).flags(), " --data d");
}

#[test]
fn a_certificate_of_another_star_is_told_by_how_the_star_was_named() {
    let error = ClientError::Handshake(Box::new(nova_client::HandshakeFailure {
        address: "127.0.0.1:7400".to_owned(),
        server_name: "127.0.0.1".to_owned(),
        authorities: Some("d/tls/ca.pem".into()),
        problem: HandshakeProblem::UnknownAuthority,
    }));
    let mut entry = Entry::of_data(Path::new("d"));
    let failure = entry.unusable("it can't be used", &error);
    assert_eq!(failure.code(), 2);
    assert!(
        failure
            .why
            .ends_with("not signed by the authority in d/tls/ca.pem")
    );
    assert!(
        failure.next.ends_with("nova serve --data d"),
        "{}",
        failure.next
    );
    entry.star = Some("127.0.0.1:7400".to_owned());
    let failure = entry.unusable("it can't be used", &error);
    assert!(
        failure.next.contains("--ca a copy of tls/ca.pem"),
        "{}",
        failure.next
    );
}
