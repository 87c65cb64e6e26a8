//! Tests of who may ask through a browser.

use super::*;

fn headers(said: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in said {
        map.append(*name, value.parse().unwrap());
    }
    map
}

fn is_taken(origins: &Origins, origin: &str, host: &str) -> bool {
    let headers = headers(&[("origin", origin), ("host", host)]);
    origins.check(&headers).is_ok()
}

#[test]
fn a_page_of_another_site_is_refused() {
    let none = Origins::default();
    assert!(is_taken(&none, "http://localhost:7380", "localhost:7380"));
    assert!(!is_taken(&none, "http://evil.example", "localhost:7380"));
    assert!(!is_taken(&none, "http://localhost:80", "localhost:7380"));
    assert!(!is_taken(&none, "null", "localhost:7380"));
    assert!(!is_taken(&none, "", ""));
    assert_eq!(none.check(&HeaderMap::new()).unwrap(), Asker::Own);
}

#[test]
fn an_origin_that_is_allowed_asks_and_is_told_what_it_may() {
    let some = Origins::new(vec!["https://app.example".to_owned()]);
    assert!(is_taken(&some, "https://app.example", "localhost:7380"));
    assert!(!is_taken(&some, "http://app.example", "localhost:7380"));
    assert!(!is_taken(
        &some,
        "https://app.example.evil",
        "localhost:7380"
    ));
    let any = Origins::new(vec!["*".to_owned()]);
    assert!(is_taken(&any, "null", "localhost:7380"));

    let asked = headers(&[
        ("origin", "https://app.example"),
        ("host", "localhost:7380"),
        ("access-control-request-method", "GET"),
    ]);
    let asker = some.check(&asked).unwrap();
    assert!(asker.preflight(&Method::GET, &asked).is_none());
    assert!(Asker::Own.preflight(&Method::OPTIONS, &asked).is_none());
    let mut response = asker.preflight(&Method::OPTIONS, &asked).unwrap();
    asker.show(&mut response);
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    let told = response.headers();
    assert_eq!(told["access-control-allow-origin"], "https://app.example");
    let may = told["access-control-allow-headers"].to_str().unwrap();
    assert!(
        may.contains("if-none-match") && may.contains("nova-match-seq"),
        "{may}"
    );
}
