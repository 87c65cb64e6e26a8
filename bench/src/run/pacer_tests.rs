//! Waits end after their moment, in the order of the moments.

use super::*;
use tokio::task::LocalSet;

fn run(test: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, test());
}

#[test]
fn waits_end_in_the_order_of_their_moments() {
    run(async || {
        let pacer = Pacer::start().unwrap();
        let start = Instant::now();
        let order = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = [3, 1, 2, 0]
            .map(|ms| {
                let (pacer, order) = (pacer.clone(), Rc::clone(&order));
                tokio::task::spawn_local(async move {
                    let moment = start + Duration::from_millis(ms);
                    pacer.until(moment).await;
                    assert!(Instant::now() >= moment);
                    order.borrow_mut().push(ms);
                })
            })
            .into();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.borrow(), [0, 1, 2, 3]);
        assert!(pacer.waiting.borrow().tasks.is_empty());
    });
}

#[test]
fn a_wait_that_is_given_up_leaves_nothing() {
    run(async || {
        let pacer = Pacer::start().unwrap();
        let far = pacer.until(Instant::now() + Duration::from_secs(3600));
        let near = pacer.until(Instant::now() + Duration::from_millis(1));
        tokio::select! {
            () = far => panic!("an hour has not passed"),
            () = near => {}
        }
        assert!(pacer.waiting.borrow().tasks.is_empty());
    });
}
