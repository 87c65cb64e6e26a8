//! A failed handshake says which star, which file and what to do.

use super::*;

fn failure(problem: HandshakeProblem) -> HandshakeFailure {
    HandshakeFailure {
        address: "star.example:7400".to_owned(),
        server_name: "star.example".to_owned(),
        authorities: Some("keys/ca.pem".into()),
        problem,
    }
}

#[test]
fn an_unknown_authority_names_the_star_the_file_and_the_copy_to_make() {
    let unknown = failure(HandshakeProblem::UnknownAuthority);
    let text = "the certificate of the star at star.example:7400 is not signed by the authority \
                in keys/ca.pem; copy tls/ca.pem of that star's data directory to keys/ca.pem, or \
                name another copy";
    assert_eq!(unknown.to_string(), text);
    let pem = HandshakeFailure {
        authorities: None,
        ..unknown
    };
    let cause = "the certificate of the star at star.example:7400 is not signed by the authority \
                 that this client trusts";
    assert_eq!(pem.cause(), cause);
    assert_eq!(
        pem.remedy(),
        "trust tls/ca.pem of that star's data directory"
    );
}

#[test]
fn a_wrong_name_tells_the_setting_of_the_star() {
    let text = failure(HandshakeProblem::WrongName).to_string();
    assert!(text.contains("does not hold for the name 'star.example'"));
    assert!(text.ends_with("--tls-names star.example"), "{text}");
}

#[test]
fn every_problem_says_cause_and_remedy() {
    for problem in [
        HandshakeProblem::UnknownAuthority,
        HandshakeProblem::Expired,
        HandshakeProblem::WrongName,
        HandshakeProblem::InvalidName,
        HandshakeProblem::Incompatible,
        HandshakeProblem::Alert(80),
    ] {
        let failure = failure(problem);
        assert!(!failure.cause().is_empty() && !failure.remedy().is_empty());
        assert!(failure.to_string().is_ascii());
    }
}
