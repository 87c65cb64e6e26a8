//! A reader as a `Stream`, for those who combine streams.
//!
//! # Invariants
//! - One item is under way at a time; a stream that is dropped loses nothing but itself.

use crate::error::ClientError;
use crate::reader::{ReadItem, Reader};
use futures_core::Stream;
use futures_core::stream::FusedStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

type Item = Result<ReadItem, ClientError>;
type Next = Pin<Box<dyn Future<Output = (Reader, Option<Item>)> + Send>>;

/// The items of a [`Reader`]. It ends when all that was asked for has been given, or after the
/// first error.
#[must_use = "streams do nothing unless polled"]
pub struct ReadStream {
    next: Option<Next>,
}

impl ReadStream {
    pub(crate) fn new(reader: Reader) -> ReadStream {
        ReadStream {
            next: Some(next(reader)),
        }
    }
}

fn next(mut reader: Reader) -> Next {
    Box::pin(async move {
        let item = reader.next_batch().await.transpose();
        (reader, item)
    })
}

impl Stream for ReadStream {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item>> {
        let Some(under_way) = &mut self.next else {
            return Poll::Ready(None);
        };
        let (reader, item) = ready!(under_way.as_mut().poll(context));
        self.next = match &item {
            Some(Ok(_)) => Some(next(reader)),
            Some(Err(_)) | None => None,
        };
        Poll::Ready(item)
    }
}

impl FusedStream for ReadStream {
    fn is_terminated(&self) -> bool {
        self.next.is_none()
    }
}

impl std::fmt::Debug for ReadStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_over = self.next.is_none();
        formatter
            .debug_struct("ReadStream")
            .field("is_over", &is_over)
            .finish_non_exhaustive()
    }
}
