//! The requests that the test star answers.

use super::CORES;
use super::serve::Served;
use nova_model::request::{
    Answer, Arrivals, BucketInfo, CoreInfo, CoreSet, CoreStatus, Request, StarInfo, StarStatus,
};
use nova_model::{Code, CoreId, Incarnation, Refusal, StreamName, Timestamp};

impl Served {
    pub(super) fn answer(&mut self, request: Request) -> Result<Answer, Refusal> {
        match &request {
            Request::CheckTail { name } | Request::Trim { name, .. } => self.redirect(name)?,
            _ => {}
        }
        let mut streams = self.shared.streams.borrow_mut();
        match request {
            Request::CreateBucket { name, settings, .. } => {
                let created = streams.buckets.insert(name.clone(), settings).is_none();
                let info = BucketInfo {
                    name,
                    settings,
                    created: Timestamp(1),
                };
                Ok(Answer::Bucket { info, created })
            }
            Request::CreateStream {
                name,
                settings,
                exclusive,
            } => {
                let created = streams.ensure(&name, settings);
                if exclusive && !created {
                    return Err(Refusal::new(Code::AlreadyExists, "it is there"));
                }
                let info = streams.get(&name)?.info(&name);
                Ok(Answer::Stream { info, created })
            }
            Request::ListStreams {
                bucket,
                page,
                known,
            } => {
                let arrivals = Arrivals {
                    incarnation: Incarnation(1),
                    count: 0,
                };
                if known == Some(arrivals) {
                    return Ok(Answer::StreamsAsBefore);
                }
                let own = |name: &&StreamName| name.key.as_str().len() % CORES == self.core;
                let names = streams.streams.keys().filter(|name| name.bucket == bucket);
                let names = names
                    .filter(own)
                    .filter(|n| *n.key.as_str() > *page.start_after);
                let mut items: Vec<_> = names.map(|n| streams.streams[n].info(n)).collect();
                let has_more = items.len() > page.limit as usize;
                items.truncate(page.limit as usize);
                Ok(Answer::Streams {
                    items,
                    has_more,
                    arrivals,
                })
            }
            Request::CheckTail { name } => Ok(Answer::Tail(streams.get(&name)?.tail)),
            Request::DescribeStream { name } => {
                let info = streams.get(&name)?.info(&name);
                Ok(Answer::Stream {
                    info,
                    created: false,
                })
            }
            other => {
                drop(streams);
                self.change(other)
            }
        }
    }

    fn change(&self, request: Request) -> Result<Answer, Refusal> {
        let mut streams = self.shared.streams.borrow_mut();
        match request {
            Request::Trim {
                name,
                stream_id,
                first,
                ..
            } => {
                let stream = streams.get(&name)?;
                stream.is_meant(&name, stream_id)?;
                stream.first = first;
                Ok(Answer::Trimmed {
                    first,
                    tail: stream.tail,
                })
            }
            Request::DeleteStream { name, stream_id } => {
                streams.get(&name)?.is_meant(&name, stream_id)?;
                streams.streams.remove(&name);
                drop(streams);
                self.shared.changed.send_modify(|count| *count += 1);
                Ok(Answer::Deleted)
            }
            Request::ReconfigureStream {
                name,
                stream_id,
                change,
            } => {
                let stream = streams.get(&name)?;
                stream.is_meant(&name, stream_id)?;
                stream.settings = stream.settings.changed_by(&change);
                let (info, created) = (stream.info(&name), false);
                Ok(Answer::Stream { info, created })
            }
            Request::Fence {
                name,
                stream_id,
                token,
                conditions,
            } => {
                let stream = streams.get(&name)?;
                stream.is_meant(&name, stream_id)?;
                stream.conditions(&conditions)?;
                stream.fence = token;
                Ok(Answer::Fenced { tail: stream.tail })
            }
            other => {
                let count = streams.streams.len() as u64;
                drop(streams);
                self.operate(other, count)
            }
        }
    }

    fn operate(&self, request: Request, streams: u64) -> Result<Answer, Refusal> {
        match request {
            Request::DescribeStar => Ok(Answer::Star(self.describe())),
            Request::Drain { cores } => Ok(self.drained(cores, true)),
            Request::Undrain { cores } => Ok(self.drained(cores, false)),
            Request::Rebalance => Ok(Answer::Rebalanced {
                moves: Vec::new(),
                has_more: false,
            }),
            Request::Status => Ok(Answer::Status(self.status(streams))),
            other => Err(Refusal::new(
                Code::Invalid,
                format!("{other:?} is not served"),
            )),
        }
    }

    fn drained(&self, cores: CoreSet, is_drained: bool) -> Answer {
        let mut knobs = self.shared.knobs.lock().expect("knobs");
        for core in (0..CORES as u16).map(CoreId) {
            if cores == CoreSet::All || cores == CoreSet::One(core) {
                knobs.drained.retain(|known| *known != core);
                knobs.drained.extend(is_drained.then_some(core));
            }
        }
        knobs.drained.sort();
        Answer::Placement {
            drained: knobs.drained.clone(),
            moved: 0,
        }
    }

    fn status(&self, streams: u64) -> StarStatus {
        let StarInfo {
            star,
            incarnation,
            cores,
            ..
        } = self.describe();
        let knobs = self.shared.knobs.lock().expect("knobs");
        let core = |info: CoreInfo| CoreStatus {
            is_drained: knobs.drained.contains(&info.core),
            core: info.core,
            address: info.address,
            is_disk_full: false,
            streams_led: streams,
            streams_loaded: streams,
            streams_moving: 0,
            sessions: 0,
            readers: 0,
            appended_bytes_per_s: 0,
            appended_records_per_s: 0,
            read_bytes_per_s: 0,
            segments: 0,
            log_bytes: 0,
            pending_bytes: 0,
            recent_bytes: 0,
        };
        StarStatus {
            star,
            incarnation,
            cores: cores.into_iter().map(core).collect(),
        }
    }

    fn describe(&self) -> StarInfo {
        let numbered = (0..).zip(&self.shared.addresses);
        let core = |(core, address): (u16, &String)| CoreInfo {
            core: CoreId(core),
            address: address.clone(),
        };
        StarInfo {
            star: self.shared.id,
            incarnation: Incarnation(1),
            core: CoreId(self.core as u16),
            cores: numbered.map(core).collect(),
        }
    }
}
