//! Connections: so many at a time, each with so much time to say what it wants, and let go when the server goes.
//!
//! Who opens connections and says nothing, or says it one letter at a time, must not keep others out.

use std::{io::ErrorKind, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;

/// How long nobody is accepted after that failed, for want of descriptors say.
const BREATH: Duration = Duration::from_secs(1);

/// What is expected of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manners {
    /// How many there may be. Others wait until one of them ends.
    pub(crate) most: usize,
    /// How long one may take to say what it wants, and how long it may want nothing.
    pub(crate) asking: Duration,
}

/// Serves connections until `closing`; then takes no more, and returns once those that are there have ended.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    manners: Manners,
    closing: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(manners.most));
    let farewell = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(manners.asking);
    let accepting = async {
        loop {
            // INVARIANT: nobody closes the semaphore.
            let place = Arc::clone(&room).acquire_owned().await.ok();
            let stream = accept(&listener).await;
            let service = TowerToHyperService::new(router.clone());
            let connection = http.serve_connection(TokioIo::new(stream), service);
            let connection = farewell.watch(connection);
            tokio::spawn(async move {
                // Whoever hangs up, or is hung up on, knows it.
                let _ = connection.await;
                drop(place);
            });
        }
    };
    tokio::select! {
        // Cancel safe: a connection that was accepted is served before the next wait.
        () = closing.cancelled() => {}
        () = accepting => {}
    }
    drop(listener);
    farewell.shutdown().await;
}

/// The next connection.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Without it, small frames wait for each other.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error) if is_of_the_caller(error.kind()) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

/// Whether it was the caller who went away.
const fn is_of_the_caller(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::routing::get;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        task::JoinHandle,
        time::timeout,
    };

    use super::*;

    /// Long enough for anything that is to happen.
    const SOON: Duration = Duration::from_secs(20);

    async fn served(
        most: usize,
        asking: Duration,
    ) -> (SocketAddr, CancellationToken, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(|| async { "here" }));
        let closing = CancellationToken::new();
        let manners = Manners { most, asking };
        let serving = tokio::spawn(serve(listener, router, manners, closing.clone()));
        (address, closing, serving)
    }

    async fn ask(stream: &mut TcpStream) -> String {
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = vec![0; 4_096];
        let read = timeout(SOON, stream.read(&mut answer)).await.unwrap();
        String::from_utf8_lossy(&answer[..read.unwrap()]).into_owned()
    }

    /// Until the server hangs up.
    async fn hung_up(stream: &mut TcpStream) {
        let mut rest = Vec::new();
        let read = timeout(SOON, stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "the connection is still open");
    }

    #[tokio::test]
    async fn who_says_nothing_or_stops_in_the_middle_is_hung_up_on() {
        let (address, ..) = served(10, Duration::from_millis(200)).await;
        let mut silent = TcpStream::connect(address).await.unwrap();
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
        let mut content = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut content).await.ends_with("here"));
        hung_up(&mut silent).await;
        hung_up(&mut slow).await;
        hung_up(&mut content).await;
    }

    #[tokio::test]
    async fn silent_connections_keep_others_waiting_and_not_out() {
        let (address, ..) = served(3, Duration::from_millis(300)).await;
        let mut silent = Vec::new();
        for _ in 0..9 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let mut last = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut last).await.ends_with("here"));
    }

    #[tokio::test]
    async fn a_connection_that_wants_nothing_ends_when_the_server_goes() {
        let (address, closing, serving) = served(10, SOON * 2).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut stream).await.ends_with("here"));
        closing.cancel();
        hung_up(&mut stream).await;
        assert!(timeout(SOON, serving).await.is_ok());
        assert!(TcpStream::connect(address).await.is_err());
    }
}
