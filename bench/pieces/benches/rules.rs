//! Micro-benchmarks of the pieces on the way of a record.
//!
//! `cargo bench -p nova-pieces`; one of them by a part of its name behind `--`.
//!
//! # Not here
//! - Whole stars: `nova bench`. What may not become dearer: the gate of this crate.

#![allow(missing_docs, reason = "Criterion's macros make items without docs")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nova_pieces::pieces;

fn all(criterion: &mut Criterion) {
    for named in pieces::NAMES.into_iter().chain(pieces::LARGE_NAMES) {
        let mut piece = pieces::make(named).expect("it has a name");
        let (family, name) = named.split_once('/').expect("of a family");
        let mut group = criterion.benchmark_group(family);
        if piece.bytes > 0 {
            group.throughput(Throughput::Bytes(piece.bytes));
        }
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| (piece.run)());
        });
        group.finish();
    }
}

criterion_group!(rules, all);
criterion_main!(rules);
