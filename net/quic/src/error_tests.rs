//! Tests of the mapping of transport errors.

use super::*;

#[test]
fn every_transport_code_has_its_meaning() {
    let seen_by = SeenBy::Peer;
    let cases = [
        (TransportErrorCode::CONNECTION_REFUSED, QuicError::Refused),
        (
            TransportErrorCode::crypto(48),
            CertificateProblem::UnknownAuthority.into(),
        ),
        (
            TransportErrorCode::crypto(51),
            CertificateProblem::UnknownAuthority.into(),
        ),
        (
            TransportErrorCode::crypto(45),
            CertificateProblem::Expired.into(),
        ),
        (
            TransportErrorCode::crypto(42),
            CertificateProblem::Unfit.into(),
        ),
        (
            TransportErrorCode::crypto(40),
            CertificateProblem::Handshake { alert: 40 }.into(),
        ),
        (TransportErrorCode::crypto(120), QuicError::Incompatible),
        (
            TransportErrorCode::PROTOCOL_VIOLATION,
            QuicError::Violation { code: 10, seen_by },
        ),
        (
            TransportErrorCode::NO_ERROR,
            QuicError::Violation { code: 0, seen_by },
        ),
    ];
    for (code, expected) in cases {
        assert_eq!(QuicError::from_transport(code, seen_by), expected);
    }
}

#[test]
fn connection_errors_without_a_code_have_their_meaning() {
    let cases = [
        (ConnectionError::VersionMismatch, QuicError::Incompatible),
        (ConnectionError::Reset, QuicError::PeerRestarted),
        (ConnectionError::TimedOut, QuicError::TimedOut),
        (ConnectionError::LocallyClosed, QuicError::ClosedHere),
        (ConnectionError::CidsExhausted, QuicError::Refused),
    ];
    for (error, expected) in cases {
        assert_eq!(QuicError::from(error), expected);
    }
}

#[test]
fn a_reason_is_cut_and_made_printable() {
    assert_eq!(printable(b"a\nb\xff"), "a b\u{fffd}");
    assert_eq!(printable(&[b'x'; 1_000]).len(), REASON_BYTES_MAX);
}
