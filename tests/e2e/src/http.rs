//! A plain HTTP/1.1 client that sends what it is told, right or wrong.
//!
//! # Invariants
//! - Every wait ends: a star that says nothing for [`PATIENCE`] fails the test.

use crate::home::Star;
use crate::process::PATIENCE;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Where a star serves HTTP.
#[derive(Debug, Clone, Copy)]
pub struct Http {
    address: SocketAddr,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its headers, names in small letters.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Reply {
    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Fails the test unless it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Reply {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// Fails the test unless it is this refusal; its facts.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Value {
        let reply = self.expect(status);
        let json = reply.json();
        assert_eq!(json["code"], code, "{json}");
        for bit in ["retry", "clean"] {
            assert!(json[bit].is_boolean(), "{json}");
        }
        assert!(json["message"].is_string(), "{json}");
        json["facts"].clone()
    }
}

impl Http {
    /// Where this star serves it.
    #[track_caller]
    pub fn of(star: &Star) -> Http {
        let line = star
            .process()
            .wait_for_line(|line| line.starts_with("serving http"));
        let (_, address) = line.rsplit_once('/').expect("an address");
        Http {
            address: address.parse().expect("an address"),
        }
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the star accepts");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a time that is no 0");
        stream
            .set_write_timeout(Some(PATIENCE))
            .expect("a time that is no 0");
        stream
    }

    /// Asks without a body.
    #[track_caller]
    pub fn get(&self, target: &str) -> Reply {
        self.send("GET", target, &[], b"")
    }

    /// Sends JSON.
    #[track_caller]
    pub fn json(&self, method: &str, target: &str, body: &Value) -> Reply {
        let json = [("content-type", "application/json")];
        self.send(method, target, &json, body.to_string().as_bytes())
    }

    /// Sends a request on a connection of its own.
    #[track_caller]
    pub fn send(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut stream = self.connect();
        let mut request = self.head(method, target, headers, body.len());
        request.extend_from_slice(body);
        // A star that refuses early may close before it has read all.
        let _early = stream.write_all(&request);
        read_reply(&mut BufReader::new(stream))
    }

    /// Sends a request whose answer goes on, and gives its lines.
    #[track_caller]
    pub fn follow(&self, target: &str, headers: &[(&str, &str)]) -> Lines {
        let mut stream = self.connect();
        let request = self.head("GET", target, headers, 0);
        stream.write_all(&request).expect("the star reads");
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader);
        Lines {
            status,
            headers,
            reader,
            rest: Vec::new(),
        }
    }

    /// Sends bytes as they are; all that comes back until the star closes.
    pub fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // The star may have closed already.
        let _early = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _broken = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn head(&self, method: &str, target: &str, headers: &[(&str, &str)], length: usize) -> Vec<u8> {
        let mut head = format!("{method} {target} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if length > 0 || method != "GET" {
            head.push_str(&format!("content-length: {length}\r\n"));
        }
        head.push_str("connection: close\r\n\r\n");
        head.into_bytes()
    }
}

/// An answer that goes on.
#[derive(Debug)]
pub struct Lines {
    /// Its status.
    pub status: u16,
    headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    rest: Vec<u8>,
}

impl Lines {
    /// The next line without its end; none once the answer is over.
    pub fn next_line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let chunk = read_chunk(&mut self.reader)?;
            self.rest.extend_from_slice(&chunk);
        }
    }

    /// Lines up to the first for which `is_it` holds; that one.
    #[track_caller]
    pub fn wait_for(&mut self, is_it: impl Fn(&str) -> bool) -> String {
        while let Some(line) = self.next_line() {
            if is_it(&line) {
                return line;
            }
        }
        panic!("the answer ended");
    }

    /// What is left of the answer.
    pub fn finish(mut self) -> Reply {
        let mut body = std::mem::take(&mut self.rest);
        while let Some(chunk) = read_chunk(&mut self.reader) {
            body.extend_from_slice(&chunk);
        }
        Reply {
            status: self.status,
            headers: self.headers,
            body,
        }
    }
}

/// Reads one answer.
#[track_caller]
pub fn read_reply(reader: &mut BufReader<TcpStream>) -> Reply {
    let (status, headers) = read_head(reader);
    let find = |name: &str| headers.iter().find(|(known, _)| known == name);
    let mut body = Vec::new();
    if find("transfer-encoding").is_some() {
        while let Some(chunk) = read_chunk(reader) {
            body.extend_from_slice(&chunk);
        }
    } else if let Some((_, length)) = find("content-length") {
        body.resize(length.parse().expect("a length"), 0);
        reader.read_exact(&mut body).expect("a whole body");
    }
    Reply {
        status,
        headers,
        body,
    }
}

#[track_caller]
fn read_head(reader: &mut BufReader<TcpStream>) -> (u16, Vec<(String, String)>) {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a head");
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let status = lines.first().and_then(|line| line.split(' ').nth(1));
    let status = status.and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status: {lines:?}"));
    let headers = lines[1..].iter().filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    (status, headers.collect())
}

/// The next chunk; none behind the last, or when the connection is gone.
fn read_chunk(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut size = String::new();
    reader.read_line(&mut size).ok()?;
    let size = usize::from_str_radix(size.trim_end(), 16).ok()?;
    let mut chunk = vec![0; size + 2];
    reader.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    (size > 0).then_some(chunk)
}
