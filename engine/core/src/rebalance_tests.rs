//! Plans of moves, case by case, and that every plan makes things better.

use super::*;
use proptest::prelude::*;

fn cores(loads: &[&[u64]]) -> Vec<CoreLoad> {
    let mut id = 0;
    let mut core = |(n, weights): (usize, &&[u64])| CoreLoad {
        core: CoreId(n as u16),
        weight: weights.iter().sum(),
        streams: weights
            .iter()
            .map(|weight| {
                id += 1;
                (StreamId(id), *weight)
            })
            .collect(),
    };
    loads.iter().enumerate().map(&mut core).collect()
}

fn words(orders: &[Order]) -> String {
    let word = |order: &Order| format!("{}:{}>{}", order.stream.0, order.from.0, order.to.0);
    orders.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn plans_case_by_case() {
    let cases: &[(&[&[u64]], &str)] = &[
        (&[&[]], ""),
        (&[&[], &[]], ""),
        (&[&[100]], ""),
        // One stream cannot be halved.
        (&[&[100], &[]], ""),
        (&[&[50, 50], &[]], "2:0>1"),
        (&[&[100, 10], &[]], "2:0>1"),
        (&[&[40, 30, 20], &[10]], "1:0>1"),
        // Within a tenth of the mean nothing moves.
        (&[&[50, 54], &[100]], ""),
        (&[&[10, 10, 10, 10], &[], &[]], "4:0>1 3:0>2"),
        // Nothing of the busiest helps; the next one gives.
        (&[&[100], &[30, 30], &[]], "3:1>2"),
        (&[&[0, 0, 0], &[]], ""),
    ];
    for (loads, expected) in cases {
        let (orders, has_more) = plan(cores(loads), 256);
        assert_eq!(words(&orders), *expected, "{loads:?}");
        assert!(!has_more);
    }
}

#[test]
fn the_number_of_moves_has_a_bound() {
    let many = vec![10; 100];
    let (orders, has_more) = plan(cores(&[&many, &[]]), 7);
    assert_eq!((orders.len(), has_more), (7, true));
    let (orders, has_more) = plan(cores(&[&many, &[]]), 256);
    assert!((45..=50).contains(&orders.len()) && !has_more);
}

proptest! {
    #[test]
    fn no_plan_makes_the_busiest_busier(
        loads in prop::collection::vec(prop::collection::vec(0u64..1_000, 0..30), 1..9)
    ) {
        let slices: Vec<&[u64]> = loads.iter().map(Vec::as_slice).collect();
        let before = cores(&slices);
        let (orders, _) = plan(before.clone(), 256);
        let mut after: Vec<u64> = before.iter().map(|core| core.weight).collect();
        let weight = |id: StreamId| {
            let mut all = before.iter().flat_map(|core| &core.streams);
            all.find(|(known, _)| *known == id).expect("a stream of the case").1
        };
        for order in &orders {
            after[usize::from(order.from.0)] -= weight(order.stream);
            after[usize::from(order.to.0)] += weight(order.stream);
        }
        let most = |weights: &[u64]| weights.iter().copied().max();
        let weights: Vec<u64> = before.iter().map(|core| core.weight).collect();
        prop_assert!(most(&after) <= most(&weights));
        let mut moved: Vec<StreamId> = orders.iter().map(|order| order.stream).collect();
        moved.sort();
        moved.dedup();
        prop_assert_eq!(moved.len(), orders.len(), "a stream moves once");
    }
}
