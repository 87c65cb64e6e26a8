//! A child process with everything it said, and waits that end.
//!
//! # Invariants
//! - A signal goes to the child or to nobody: it is sent through a descriptor of the process, never
//!   by a number that another process may have got meanwhile.
//! - Dropped, the child is killed and reaped.

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a test waits for what should take much less than a second.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running or ended child.
#[derive(Debug)]
pub struct Process {
    name: String,
    handle: OwnedFd,
    id: u32,
    stdin: Option<ChildStdin>,
    seen: Arc<Seen>,
    threads: Vec<JoinHandle<()>>,
}

/// How a process ended and all it said.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// What it wrote to stdout.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Ended {
    /// Stdout as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The exit code; none after a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Fails the test with all that was said unless the code is 0.
    #[track_caller]
    pub fn expect_done(self) -> Ended {
        self.expect_code(0)
    }

    /// Fails the test with all that was said unless the code is `code`.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Ended {
        assert_eq!(
            self.code(),
            Some(code),
            "{:?}\nstdout:\n{}\nstderr:\n{}",
            self.status,
            self.text(),
            self.stderr
        );
        self
    }
}

#[derive(Debug, Default)]
struct Seen {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    open_streams: usize,
    status: Option<ExitStatus>,
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn wait<T>(&self, patience: Duration, mut find: impl FnMut(&State) -> Option<T>) -> Option<T> {
        let until = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            if let Some(found) = find(&state) {
                return Some(found);
            }
            let left = until.checked_duration_since(Instant::now())?;
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Process {
    /// Starts a child, whose name is for messages.
    pub fn start(name: &str, command: &mut Command) -> Process {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|e| panic!("{name} does not start: {e}"));
        let id = child.id();
        let pid = Pid::from_child(&child);
        let handle = pidfd_open(pid, PidfdFlags::empty()).expect("a child that is not reaped");
        let seen = Arc::new(Seen::default());
        seen.change(|state| state.open_streams = 2);
        let stdout = child.stdout.take().expect("piped");
        let stderr = child.stderr.take().expect("piped");
        let stdin = child.stdin.take();
        let threads = vec![
            record(Arc::clone(&seen), stdout, |state| &mut state.stdout),
            record(Arc::clone(&seen), stderr, |state| &mut state.stderr),
            reap(Arc::clone(&seen), child),
        ];
        Process {
            name: name.to_owned(),
            handle,
            id,
            stdin,
            seen,
            threads,
        }
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Writes to its stdin.
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin
            .write_all(bytes)
            .and_then(|()| stdin.flush())
            .expect("the child reads");
    }

    /// Closes its stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends a signal; nothing happens if it has ended.
    pub fn signal(&self, signal: Signal) {
        // It fails only for a process that has ended.
        let _ended = pidfd_send_signal(&self.handle, signal);
    }

    /// Stops it with SIGSTOP: when this returns, none of its threads runs until SIGCONT.
    #[track_caller]
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        let stopped = waitid(WaitId::PidFd(self.handle.as_fd()), WaitIdOptions::STOPPED);
        assert!(matches!(stopped, Ok(Some(_))), "{} has ended", self.name);
    }

    /// Waits for a line of stdout.
    #[track_caller]
    pub fn wait_for_line(&self, is_it: impl Fn(&str) -> bool) -> String {
        self.wait_for("a line of stdout", PATIENCE, |state| {
            find_line(&state.stdout, &is_it)
        })
    }

    /// Waits for a line of stdout; none if the child ends without it.
    #[track_caller]
    pub fn wait_for_line_or_end(&self, is_it: impl Fn(&str) -> bool) -> Option<String> {
        let what = "a line of stdout or the end";
        self.wait_for(what, PATIENCE, |state| {
            let line = find_line(&state.stdout, &is_it);
            let is_over = state.status.is_some() && state.open_streams == 0;
            line.map(Some).or_else(|| is_over.then_some(None))
        })
    }

    /// Whether stdout has such a line by now.
    pub fn has_said(&self, is_it: impl Fn(&str) -> bool) -> bool {
        find_line(&self.seen.lock().stdout, &is_it).is_some()
    }

    /// Waits for a line of stderr.
    #[track_caller]
    pub fn wait_for_error_line(&self, is_it: impl Fn(&str) -> bool) -> String {
        self.wait_for("a line of stderr", PATIENCE, |state| {
            find_line(&state.stderr, &is_it)
        })
    }

    /// Waits until stdout satisfies `is_it`.
    #[track_caller]
    pub fn wait_for_output(&self, is_it: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        self.wait_for("an output", PATIENCE, |state| {
            is_it(&state.stdout).then(|| state.stdout.clone())
        })
    }

    /// What it said on stderr until now.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().stderr).into_owned()
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.seen.lock().status.is_some()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait_for_end(mut self) -> Ended {
        self.stdin = None;
        let ended = self.wait_for("the end", PATIENCE, |state| {
            let status = state.status.filter(|_| state.open_streams == 0)?;
            let stdout = state.stdout.clone();
            let stderr = String::from_utf8_lossy(&state.stderr).into_owned();
            Some(Ended {
                status,
                stdout,
                stderr,
            })
        });
        self.join();
        ended
    }

    #[track_caller]
    fn wait_for<T>(
        &self,
        what: &str,
        patience: Duration,
        mut find: impl FnMut(&State) -> Option<T>,
    ) -> T {
        // An end with nothing left to say is an answer too: what was waited for never comes.
        let found = self.seen.wait(patience, |state| {
            let over = state.status.is_some() && state.open_streams == 0;
            find(state).map(Some).or_else(|| over.then_some(None))
        });
        found.flatten().unwrap_or_else(|| {
            let state = self.seen.lock();
            panic!(
                "{} did not give {what} (status {:?})\nstdout:\n{}\nstderr:\n{}",
                self.name,
                state.status,
                String::from_utf8_lossy(&state.stdout),
                String::from_utf8_lossy(&state.stderr)
            )
        })
    }

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _panicked = thread.join();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stdin = None;
        if !self.has_ended() {
            self.signal(Signal::KILL);
        }
        self.join();
        if std::thread::panicking() {
            eprintln!("--- stderr of {}:\n{}", self.name, self.errors());
        }
    }
}

fn find_line(bytes: &[u8], is_it: &impl Fn(&str) -> bool) -> Option<String> {
    let end = bytes.iter().rposition(|&byte| byte == b'\n')?;
    let text = String::from_utf8_lossy(&bytes[..end]);
    text.lines().find(|line| is_it(line)).map(str::to_owned)
}

fn record(
    seen: Arc<Seen>,
    mut stream: impl Read + Send + 'static,
    place: fn(&mut State) -> &mut Vec<u8>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut piece = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            seen.change(|state| place(state).extend_from_slice(&piece[..count]));
        }
        seen.change(|state| state.open_streams -= 1);
    })
}

fn reap(seen: Arc<Seen>, mut child: Child) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let status = child.wait().expect("a child can be waited for");
        seen.change(|state| state.status = Some(status));
    })
}
