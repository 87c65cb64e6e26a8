//! Every order of lost requests, lost answers and others' fences, up to a bound.

use super::*;

/// Tokens: 0 is installed at first, 1 is the caller's, others come from 2 on.
const OWN: u32 = 1;
/// Sendings in one life.
const ATTEMPTS: u32 = 3;
/// Fences of others in one life.
const OTHERS: u32 = 2;

/// What a client does that sends a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Judged,
    /// Sends again, whatever there is: the canary.
    Blind,
}

#[derive(Debug, Clone, Copy)]
struct World {
    installed: u32,
    others: u32,
    own_times: u32,
}

/// How a life may end, counted.
#[derive(Debug, Default)]
struct Ends {
    done: u32,
    ambiguous: u32,
    twice: u32,
}

impl World {
    /// The worlds after any number of others' fences.
    fn meanwhile(self) -> impl Iterator<Item = World> {
        (self.others..=OTHERS).map(move |others| World {
            installed: if others == self.others {
                self.installed
            } else {
                OWN + others
            },
            others,
            ..self
        })
    }

    fn apply(&mut self, manner: Manner, held: u32) -> bool {
        let holds = manner == Manner::Blind || self.installed == held;
        if holds {
            self.own_times += u32::from(self.installed != OWN);
            self.installed = OWN;
        }
        holds
    }
}

fn live(manner: Manner, world: World, held: u32, attempt: u32, is_doubtful: bool, ends: &mut Ends) {
    if world.own_times > 1 {
        ends.twice += 1;
        return;
    }
    if attempt == ATTEMPTS {
        return;
    }
    for before in world.meanwhile() {
        for (arrives, is_answered) in [(false, false), (true, false), (true, true)] {
            let mut there = before;
            let holds = arrives && there.apply(manner, held);
            if is_answered && holds {
                ends.done += 1;
                assert!(there.own_times > 1 || there.installed == OWN);
                ends.twice += u32::from(there.own_times > 1);
                continue;
            }
            let came_to = match is_answered {
                true => Attempt::Overtaken,
                false => Attempt::Doubtful,
            };
            for after in there.meanwhile() {
                let is_doubtful = is_doubtful || came_to == Attempt::Doubtful;
                look(manner, after, (held, attempt, came_to, is_doubtful), ends);
            }
        }
    }
}

fn look(
    manner: Manner,
    world: World,
    (held, attempt, came_to, is_doubtful): (u32, u32, Attempt, bool),
    ends: &mut Ends,
) {
    let seen = match world.installed {
        OWN => Seen::Done,
        token if token == held => Seen::Before,
        _ => Seen::Other,
    };
    let verdict = match manner {
        Manner::Judged => judge(came_to, is_doubtful, seen),
        Manner::Blind => Verdict::Again,
    };
    let next = match verdict {
        Verdict::Done => {
            assert_eq!(world.own_times, 1, "it was installed");
            ends.done += 1;
            return;
        }
        Verdict::Ambiguous => {
            assert_ne!(world.installed, OWN);
            ends.ambiguous += 1;
            return;
        }
        Verdict::Refused => panic!("nothing is refused here but what was overtaken"),
        Verdict::Again => held,
        Verdict::Anew => world.installed,
    };
    live(manner, world, next, attempt + 1, is_doubtful, ends);
}

fn all(manner: Manner) -> Ends {
    let world = World {
        installed: 0,
        others: 0,
        own_times: 0,
    };
    let mut ends = Ends::default();
    live(manner, world, 0, 0, false, &mut ends);
    ends
}

#[test]
fn a_fence_is_installed_once_whatever_is_lost_and_whoever_comes_in_between() {
    let ends = all(Manner::Judged);
    assert_eq!(ends.twice, 0);
    assert!(ends.done > 10 && ends.ambiguous > 10, "{ends:?}");
}

#[test]
fn a_client_that_repeats_blindly_is_found_to_take_the_stream_back() {
    assert!(all(Manner::Blind).twice > 10);
}

#[test]
fn what_was_refused_before_any_doubt_is_refused() {
    for seen in [Seen::Done, Seen::Before, Seen::Other] {
        assert_eq!(judge(Attempt::Refused, false, seen), Verdict::Refused);
        assert_eq!(judge(Attempt::Overtaken, false, seen), Verdict::Anew);
    }
    let refused = judge(Attempt::Refused, true, Seen::Before);
    assert_eq!(refused, Verdict::Refused, "no attempt was applied");
}
