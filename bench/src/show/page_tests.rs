//! The page is whole and needs nothing from elsewhere.

use super::*;
use crate::show::text::tests::sample;

#[test]
fn a_page_needs_nothing_from_elsewhere() {
    let page = page(&sample());
    for part in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(part), "{part}");
    }
    assert!(page.contains("any &lt;warning&gt;"));
    assert_eq!(page.matches("<svg").count(), 6, "three plots of two loads");
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert_eq!(
        page.matches("<table").count(),
        page.matches("</table>").count()
    );
}

#[test]
fn ticks_of_time_are_short() {
    let cases = [
        (0.5, "0.5 us"),
        (200.0, "200 us"),
        (3e4, "30 ms"),
        (1e6, "1 s"),
    ];
    for (us, text) in cases {
        assert_eq!(round_micros(us), text);
    }
}

#[test]
fn shares_are_written_with_their_nines() {
    for (share, text) in [(0.0, "0"), (0.9, "90"), (0.99, "99"), (0.999, "99.9")] {
        assert_eq!(percent(share), text);
    }
}
