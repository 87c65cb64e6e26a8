//! Tests of the pages of a list and of what is said.

use super::*;

#[test]
fn a_list_goes_on_behind_the_last_name_until_there_are_enough() {
    let args = PageArgs {
        prefix: "a".to_owned(),
        start_after: "ab".to_owned(),
        limit: Some(1_500),
    };
    let page = args.next(0, None).unwrap();
    assert_eq!((page.start_after.as_str(), page.limit), ("ab", 1_000));
    let page = args.next(1_000, Some("ax")).unwrap();
    assert_eq!((page.start_after.as_str(), page.limit), ("ax", 500));
    assert_eq!(args.next(1_500, Some("az")), None);
    let all = PageArgs {
        limit: None,
        ..args
    };
    assert_eq!(all.next(1_000_000, Some("b")).unwrap().limit, 1_000);
}

#[test]
fn what_was_deleted_is_told() {
    assert_eq!(
        deleted_text("bucket", "logs", false),
        "deleted bucket logs\n"
    );
    let json = "{\"bucket\":\"logs\",\"deleted\":true}\n";
    assert_eq!(deleted_text("bucket", "logs", true), json);
}
