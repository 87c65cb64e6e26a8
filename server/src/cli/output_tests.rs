//! Tests of buffered output.

use super::*;
use std::io::{Read, Seek};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(work)
}

#[test]
fn everything_is_written_in_order() {
    let mut file = tempfile::tempfile().unwrap();
    let mut output = Output::to(file.try_clone().unwrap()).unwrap();
    let mut expected = Vec::new();
    block_on(async {
        for n in 0..100_000_u32 {
            let line = format!("{n}\n");
            output.buffer().extend_from_slice(line.as_bytes());
            expected.extend_from_slice(line.as_bytes());
            output.flush_if_full().await.unwrap();
        }
        output.finish().await.unwrap();
    });
    let mut written = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut written).unwrap();
    assert!(written == expected);
}

#[test]
fn a_reader_that_has_gone_ends_it_without_a_failure() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    drop(reader);
    block_on(async {
        let mut output = Output::to(File::from(writer)).unwrap();
        let mut told = Ok(());
        while told.is_ok() {
            output.buffer().push(b'x');
            told = output.flush().await;
        }
        assert_eq!(told, Err(Gone));
        assert_eq!(output.finish().await, Ok(()));
    });
}

#[test]
fn a_full_disk_is_a_failure() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    block_on(async {
        let mut output = Output::to(full).unwrap();
        output.buffer().push(b'x');
        let failure = output.finish().await.unwrap_err();
        assert_eq!(failure.code(), 1);
    });
}
