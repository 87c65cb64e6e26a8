//! A promise of one append's positions.

use crate::core::{Appended, Share};
use crate::driver::outcome_cell::OutcomeCell;
use crate::error::ClientError;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The result of an append that is on its way: a future, which resolves once the records are
/// durable or it is clear why not.
///
/// It resolves in every case, also when the producer is dropped: then with
/// [`ClientError::Closed`] if the records never left, else with [`ClientError::Ambiguous`].
/// Dropping a ticket does not take the append back.
#[derive(Debug)]
#[must_use = "an append that nobody waits for may fail unseen; flush() tells too"]
pub struct Ticket {
    share: Share,
    cell: Arc<OutcomeCell>,
    place: Option<usize>,
}

impl Ticket {
    pub(crate) fn new((share, cell): (Share, Arc<OutcomeCell>)) -> Ticket {
        Ticket {
            share,
            cell,
            place: None,
        }
    }

    /// The result, if it is there.
    pub fn try_result(&self) -> Option<Result<Appended, ClientError>> {
        let result = self.cell.get()?;
        Some(
            result
                .as_ref()
                .map(|ack| self.share.appended(ack))
                .map_err(|e| e.clone().into()),
        )
    }
}

impl Future for Ticket {
    type Output = Result<Appended, ClientError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let result = std::task::ready!(this.cell.poll(context, &mut this.place));
        Poll::Ready(match result {
            Ok(ack) => Ok(this.share.appended(ack)),
            Err(error) => Err(error.clone().into()),
        })
    }
}
