//! Mappings of this process, as the system tells them, and bytes that must stay what they are.

use super::*;
use std::alloc::System;
use std::fs;

/// What the system says about the mapping at `start`.
fn mapping_at(start: *const u8) -> Option<String> {
    let maps = fs::read_to_string("/proc/self/smaps").expect("this process's mappings");
    let mut found = None;
    for line in maps.lines() {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let borders = range.and_then(|(from, to)| {
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some(number(from)?..number(to)?)
        });
        match borders {
            Some(borders) if borders.contains(&start.addr()) => found = Some(String::new()),
            Some(_) if found.is_some() => break,
            _ => {}
        }
        if let Some(found) = &mut found {
            found.push_str(line);
            found.push('\n');
        }
    }
    found
}

fn has_huge_pages() -> bool {
    fs::exists("/sys/kernel/mm/transparent_hugepage/enabled").expect("a readable folder")
}

fn asks_for_huge_pages(start: *const u8) -> bool {
    let mapping = mapping_at(start).expect("it is mapped");
    let flags = mapping
        .lines()
        .find_map(|line| line.strip_prefix("VmFlags:"));
    flags
        .expect("flags of a mapping")
        .split(' ')
        .any(|flag| flag == "hg")
}

#[test]
fn pages_are_aligned_zeroed_and_asked_to_be_huge() {
    let mut pages = HugePages::map(3 * 1024 * 1024).expect("memory");
    assert_eq!(pages.len(), 4 * 1024 * 1024);
    assert_eq!(pages.as_ptr().addr() % HUGE_PAGE_BYTES, 0);
    assert!(pages.iter().all(|&byte| byte == 0));
    pages.fill(7);
    assert_eq!(asks_for_huge_pages(pages.as_ptr()), has_huge_pages());
}

#[test]
fn the_memory_of_a_core_is_in_huge_pages_and_goes_back() {
    let memory = DeviceMemory(System);
    let layout = Layout::from_size_align(DEVICE_MEMORY_BYTES, BLOCK_BYTES).expect("a layout");
    // SAFETY: the layout has a size; what is written lies in it; it is given back once.
    unsafe {
        let start = memory.alloc_zeroed(layout);
        assert!(!start.is_null());
        assert_eq!(start.addr() % HUGE_PAGE_BYTES, 0);
        assert_eq!(start.add(layout.size() - 1).read(), 0);
        start.add(layout.size() - 1).write(1);
        assert_eq!(asks_for_huge_pages(start), has_huge_pages());
        memory.dealloc(start, layout);
    }
}

#[test]
fn other_sizes_and_alignments_go_to_the_other_allocator() {
    let memory = DeviceMemory(System);
    let others = [
        (DEVICE_MEMORY_BYTES - 1, BLOCK_BYTES),
        (DEVICE_MEMORY_BYTES, 8),
        (16, 16),
    ];
    for (size, align) in others {
        let layout = Layout::from_size_align(size, align).expect("a layout");
        // SAFETY: the layout has a size, and the memory is given back once.
        unsafe {
            let start = memory.alloc(layout);
            assert!(!start.is_null());
            assert!(
                !asks_for_huge_pages(start),
                "{size} bytes, aligned to {align}"
            );
            memory.dealloc(start, layout);
        }
    }
}

#[test]
fn bytes_move_when_memory_becomes_the_devices_and_back() {
    let memory = DeviceMemory(System);
    let small = Layout::from_size_align(BLOCK_BYTES, BLOCK_BYTES).expect("a layout");
    let large = Layout::from_size_align(DEVICE_MEMORY_BYTES, BLOCK_BYTES).expect("a layout");
    // SAFETY: sizes are not zero; each piece is used with its own layout, and not after it moved.
    unsafe {
        let start = memory.alloc(small);
        start.write_bytes(9, small.size());
        let start = memory.realloc(start, small, large.size());
        assert_eq!(asks_for_huge_pages(start), has_huge_pages());
        assert_eq!(start.add(small.size() - 1).read(), 9);
        let start = memory.realloc(start, large, small.size());
        assert_eq!(start.add(small.size() - 1).read(), 9);
        memory.dealloc(start, small);
    }
}
