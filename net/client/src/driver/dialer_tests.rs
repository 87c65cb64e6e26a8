//! The name that a certificate must hold for.

use super::host;

#[test]
fn the_host_of_an_address_is_the_name_that_the_certificate_must_hold_for() {
    assert_eq!(host("star.example:4433"), "star.example");
    assert_eq!(host("10.0.0.1:1"), "10.0.0.1");
    assert_eq!(host("[::1]:4433"), "::1");
}
