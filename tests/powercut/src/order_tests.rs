//! Each order is read as it was written; anything else is none.

use super::*;

#[test]
fn an_order_is_read_as_it_was_written() {
    let cut = |survivors| {
        Order::Cut(Cut {
            operations: 400,
            seed: u64::MAX,
            survivors,
        })
    };
    let orders = [
        cut(Survivors::Some),
        cut(Survivors::None),
        Order::On,
        Order::Fail(Kind::Read, 1),
        Order::Fail(Kind::Write, 2),
        Order::Fail(Kind::Flush, u64::MAX),
        Order::Spoil(1 << 40, 4096),
        Order::Delay(Kind::Flush, 20),
        Order::Hang,
        Order::Resume,
        Order::Lie,
        Order::Count,
    ];
    for order in orders {
        assert_eq!(order.to_string().parse(), Ok(order));
    }
}

#[test]
fn other_text_is_no_order() {
    let texts = [
        "",
        "cut",
        "cut 1 2 all",
        "cut x 2 some",
        "fail trim 1",
        "fail read",
        "delay flush -1",
        "hang now",
    ];
    for text in texts {
        assert_eq!(text.parse::<Order>(), Err(NoOrder(text.to_owned())));
    }
}
