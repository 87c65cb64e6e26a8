//! `cargo fuzz run segment`: see the crate's target of that name.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    nova_fuzz::targets::segment(data);
});
