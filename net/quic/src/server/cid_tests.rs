//! Tests of the connection ids.

use std::collections::BTreeSet;

use super::*;

#[test]
fn the_first_byte_is_the_core_and_the_rest_is_random() {
    for core in [0u8, 1, 7, 255] {
        let mut ids = CoreIds::new(core);
        let seen: BTreeSet<[u8; ID_BYTES]> = (0..256)
            .map(|_| {
                let id = ids.generate_cid();
                assert!(ids.validate(&id).is_ok());
                <[u8; ID_BYTES]>::try_from(&id[..]).unwrap()
            })
            .collect();
        assert_eq!(seen.len(), 256, "an id was made twice");
        assert!(seen.iter().all(|id| id[0] == core));
    }
}

#[test]
fn ids_of_other_cores_and_lengths_are_refused() {
    let mut other = CoreIds::new(3);
    let ids = CoreIds::new(4);
    assert!(ids.validate(&other.generate_cid()).is_err());
    assert!(ids.validate(&ConnectionId::new(&[4; 7])).is_err());
    assert!(ids.validate(&ConnectionId::new(&[])).is_err());
}
