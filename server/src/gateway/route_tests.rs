//! Tests of what holds for every request, and of the document.

use super::*;
use nova_model::Facts;

fn headers(said: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in said {
        map.append(*name, value.parse().unwrap());
    }
    map
}

#[test]
fn a_header_of_ours_that_nobody_knows_is_refused() {
    assert!(check_headers(&headers(&[("nova-fence", "me"), ("x-other", "1")])).is_ok());
    let refused = check_headers(&headers(&[("nova-fense", "me")])).unwrap_err();
    assert!(
        refused.refusal().message.contains("'nova-fence'"),
        "{refused:?}"
    );
}

#[test]
fn headers_over_their_bounds_are_refused_with_the_largest_named() {
    let long = "x".repeat(HTTP_HEADER_BYTES_MAX);
    let refused = check_headers(&headers(&[("a", "b"), ("cookie", &long)])).unwrap_err();
    let expected = Facts::Field {
        field: "cookie".to_owned(),
        limit: Some(HTTP_HEADER_BYTES_MAX as u64),
    };
    assert_eq!(refused.refusal().facts, expected);
    let many = vec![("a", "b"); HTTP_HEADERS_MAX + 1];
    assert!(check_headers(&headers(&many)).is_err());
    assert!(check_headers(&headers(&many[1..])).is_ok());
    assert!(check_target(HTTP_TARGET_BYTES_MAX).is_ok());
    assert!(check_target(HTTP_TARGET_BYTES_MAX + 1).is_err());
}

#[test]
fn the_document_names_every_operation_once() {
    let (_, api) = open_router().split_for_parts();
    let json = document::finish(&api);
    let paths = json["paths"].as_object().unwrap();
    let operations = paths.values().flat_map(|path| path.as_object().unwrap());
    let ids: std::collections::BTreeSet<_> = operations
        .filter_map(|(_, operation)| operation["operationId"].as_str())
        .collect();
    assert_eq!(ids.len(), 25, "{ids:?}");
    for name in ["Problem", "Append", "Page", "Stream", "Bucket"] {
        assert!(json["components"]["schemas"][name].is_object(), "{name}");
    }
}

#[test]
fn what_may_be_left_out_is_never_null_in_a_parameter() {
    let (_, api) = open_router().split_for_parts();
    let json = document::finish(&api);
    let read = &json["paths"]["/v1/streams/{bucket}/{key}/records"]["get"];
    let parameters = read["parameters"].as_array().unwrap();
    assert!(parameters.len() > 10);
    for parameter in parameters {
        assert!(!parameter.to_string().contains("null"), "{parameter}");
    }
}
