//! Tests of whole numbers.

use super::*;

#[test]
fn a_whole_number_fits_signed_64_bits() {
    let read = |text: &str| serde_json::from_str::<Whole>(text).ok();
    assert_eq!(read("0"), Some(Whole(0)));
    assert_eq!(read("9223372036854775807"), Some(Whole(WHOLE_MAX)));
    assert_eq!(read("7.0"), Some(Whole(7)));
    for text in [
        "9223372036854775808",
        "-1",
        "1.5",
        "1e300",
        "-1.0",
        "\"1\"",
        "null",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}
