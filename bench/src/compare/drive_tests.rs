//! What producers send and count, with a writer that answers at once.

use super::*;

/// Holds at most so many batches unanswered.
struct Fake {
    unanswered: usize,
    most: usize,
}

impl Writer for Fake {
    async fn send(&mut self, records: usize) -> Result<(), BenchError> {
        assert_eq!(records, 4);
        self.unanswered += 1;
        assert!(self.unanswered <= self.most);
        Ok(())
    }

    async fn acked(&mut self) -> Result<(), BenchError> {
        self.unanswered -= 1;
        Ok(())
    }
}

fn appended(until: Until) -> Appended {
    let job = Job {
        producers: 2,
        batch: 4,
        window: 3,
        until,
    };
    let writers = [0, 1].map(|_| Fake {
        unanswered: 0,
        most: 3,
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build_local(tokio::runtime::LocalOptions::default());
    let done = runtime.unwrap().block_on(drive(writers.into(), job));
    done.unwrap()
}

#[test]
fn each_producer_sends_as_many_batches_as_it_is_told() {
    assert_eq!(appended(Until::Batches(5)).records, 2 * 5 * 4);
}

#[test]
fn producers_send_until_the_time_is_over_and_all_of_it_counts() {
    assert_eq!(appended(Until::Elapsed(Duration::ZERO)).records, 0);
    let lasts = Duration::from_millis(20);
    let done = appended(Until::Elapsed(lasts));
    assert!(done.time >= lasts);
    assert!(done.records >= 2 * 3 * 4, "{}", done.records);
}
