//! Tests of where events go on.

use super::*;

fn last(text: &str) -> Result<Option<LastEvent>, ()> {
    let mut headers = HeaderMap::new();
    headers.insert(LAST_EVENT_ID, text.parse().unwrap());
    last_event(&headers).map_err(|_| ())
}

#[test]
fn an_id_is_a_number_and_an_incarnation() {
    let id = "0123456789abcdef0123456789abcdef";
    let event = last(&format!("7@{id}")).unwrap().unwrap();
    assert_eq!(event.sequence, 7);
    assert_eq!(event.stream_id.unwrap().to_string(), id);
    let alone = LastEvent {
        sequence: 7,
        stream_id: None,
    };
    assert_eq!(last("7"), Ok(Some(alone)));
    assert_eq!(last_event(&HeaderMap::new()).unwrap(), None);
}

#[test]
fn what_is_no_id_is_refused() {
    for text in [
        "",
        "x",
        "-1",
        "+1",
        "7@",
        "7@7",
        "1000000000000000000",
        "@",
        "7 ",
    ] {
        assert_eq!(last(text), Err(()), "{text}");
    }
}

#[test]
fn a_browser_that_is_refused_for_the_moment_comes_again() {
    // Seen with chromium: a star that was killed and starting again answered its EventSource with
    // 503, and the page was never told anything again.
    let refusal = Refusal::new(Code::Unavailable, "the star is starting");
    assert!(refusal.retry);
    let response = come_again(&refusal);
    assert_eq!(response.status(), axum::http::StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
}
