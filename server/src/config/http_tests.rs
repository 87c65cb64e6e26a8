//! Tests of where HTTP is served.

use super::*;

fn served(said: Option<&str>, plain: bool, port: u16) -> Option<(String, bool)> {
    let said = said.map(|text| text.parse().unwrap());
    resolve(said, plain, port).map(|http| (http.listen.to_string(), http.is_plain))
}

#[test]
fn only_this_machine_is_served_without_tls_unless_told() {
    let at = |text: &str, is_plain| Some((text.to_owned(), is_plain));
    assert_eq!(served(None, false, 7400), at("127.0.0.1:7380", true));
    assert_eq!(served(None, false, 0), at("127.0.0.1:0", true));
    assert_eq!(served(Some("off"), true, 7400), None);
    let everywhere = Some("0.0.0.0:80");
    assert_eq!(served(everywhere, false, 1), at("0.0.0.0:80", false));
    assert_eq!(served(everywhere, true, 1), at("0.0.0.0:80", true));
    assert_eq!(served(Some("[::1]:0"), false, 1), at("[::1]:0", true));
}

#[test]
fn what_is_no_address_is_refused() {
    for text in ["", "on", "localhost:80", "127.0.0.1", "127.0.0.1:99999"] {
        let refused = text.parse::<HttpListen>().unwrap_err();
        assert!(refused.contains(text), "{refused}");
    }
}
