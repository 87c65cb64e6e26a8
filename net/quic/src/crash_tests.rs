//! A server process that is killed, and its successor: the port is taken again at once, and
//! clients are told instead of left waiting.
//!
//! The server runs in a child process: this test binary, told by an environment variable to run
//! nothing but [`child_server`].

use std::{
    env,
    io::{BufRead as _, BufReader},
    net::{SocketAddr, UdpSocket},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    baseline::{EchoServer, ping_pong},
    certificates::{self, CA_CERTIFICATE_FILE},
    client::ClientEndpoint,
    error::QuicError,
    params::{ClientParams, ServerParams},
    tls::ClientTls,
};

const ADDRESS: &str = "NOVA_QUIC_TEST_ADDRESS";
const DIRECTORY: &str = "NOVA_QUIC_TEST_DIRECTORY";
const READY: &str = "server is ready";

/// The child's side: serves until killed. Without the variables it has nothing to do.
#[test]
fn child_server() {
    let (Ok(address), Ok(directory)) = (env::var(ADDRESS), env::var(DIRECTORY)) else {
        return;
    };
    let tls = certificates::prepare(Path::new(&directory), &[]).unwrap();
    let params = ServerParams::new(64 * 1024 * 1024);
    let address = address.parse().unwrap();
    let _server = EchoServer::start(address, tls, params, None, Duration::ZERO, None).unwrap();
    println!("{READY}");
    // Ends with the parent, which holds the other end.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

fn start_child(address: SocketAddr, directory: &Path) -> Child {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "crash_tests::child_server", "--nocapture"])
        .env(ADDRESS, address.to_string())
        .env(DIRECTORY, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        lines.map_while(Result::ok).any(|line| line.contains(READY)),
        "the child is ready"
    );
    child
}

/// A client whose server had been killed used to wait for its idle timeout, 15 s, because the
/// reset key was another after each start; and the start failed while the kernel was still taking
/// the predecessor's ring apart.
#[test]
fn after_a_kill_the_port_is_taken_again_and_clients_are_told() {
    let directory = TempDir::new().unwrap();
    certificates::prepare(directory.path(), &[]).unwrap();
    let tls = ClientTls::from_ca_file(&directory.path().join(CA_CERTIFICATE_FILE)).unwrap();
    let address = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut child = start_child(address, directory.path());
        let endpoint = ClientEndpoint::new(&tls, ClientParams::default()).unwrap();
        let connection = endpoint.connect(address, "localhost").await.unwrap();
        ping_pong(&connection, 128, 10).await.unwrap();
        child.kill().unwrap();
        child.wait().unwrap();

        let begin = Instant::now();
        let mut child = start_child(address, directory.path());
        ping_pong(&connection, 128, 1).await.unwrap_err();
        assert_eq!(connection.closed().await, QuicError::PeerRestarted);
        let connection = endpoint.connect(address, "localhost").await.unwrap();
        ping_pong(&connection, 128, 10).await.unwrap();
        assert!(begin.elapsed() < ClientParams::default().transport.idle_timeout);
        child.kill().unwrap();
        child.wait().unwrap();
    });
}
