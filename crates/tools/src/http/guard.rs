//! Whom a tool may talk to: every address is looked at before it is connected to.
//!
//! Names are resolved here and nowhere else, and the addresses that were looked at are those that are connected to, so a
//! name cannot change its mind in between.

use std::{
    collections::BTreeSet,
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use async_trait::async_trait;
use holdpoint_core::AddressKind;
use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};

type Boxed = Box<dyn std::error::Error + Send + Sync>;

/// Where the addresses of a name come from.
#[async_trait]
pub(super) trait Names: Send + Sync + fmt::Debug {
    async fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of this machine.
#[derive(Debug)]
pub(super) struct SystemNames;

#[async_trait]
impl Names for SystemNames {
    async fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Lets a request reach public addresses, and others where its definition allows that.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    names: Arc<dyn Names>,
    /// Hosts for which private addresses are fine, normalised.
    hosts: BTreeSet<String>,
    /// Addresses that are fine for every host.
    addresses: BTreeSet<IpAddr>,
}

/// Why a host is not talked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("`{0}` has no address")]
    NoAddress(String),
    #[error("`{host}` has the private address {address}, and `allow_private` names neither")]
    Private { host: String, address: IpAddr },
    #[error(
        "`{host}` has the address {address}, which is not for tools (link-local, multicast, reserved), and `allow_private` \
         does not name it"
    )]
    Reserved { host: String, address: IpAddr },
}

impl Guard {
    /// A guard that knows what `allow_private` says, or which of its entries is no host.
    pub(super) fn new(names: Arc<dyn Names>, allow_private: &[String]) -> Result<Self, String> {
        let mut guard = Self {
            names,
            hosts: BTreeSet::new(),
            addresses: BTreeSet::new(),
        };
        for entry in allow_private {
            let host = host_of(entry).ok_or_else(|| entry.clone())?;
            match address_of(&host) {
                Some(address) => guard.addresses.insert(address),
                None => guard.hosts.insert(host),
            };
        }
        Ok(guard)
    }

    /// Looks at a host that is an address; names are looked at when they are resolved.
    pub(super) fn check_literal(&self, url: &Url) -> Result<(), Refused> {
        let host = url.host_str().unwrap_or_default();
        match address_of(host) {
            Some(address) => self.check(host, address),
            None => Ok(()),
        }
    }

    /// Whether the host of a URL is one that `allow_private` names.
    pub(super) fn names(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        match address_of(host) {
            Some(address) => self.addresses.contains(&address),
            None => self.hosts.contains(host),
        }
    }

    fn check(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        if self.addresses.contains(&address) {
            return Ok(());
        }
        let host = host.trim_end_matches('.').to_owned();
        match AddressKind::of(address) {
            AddressKind::Public => Ok(()),
            AddressKind::Private if self.hosts.contains(&host.to_ascii_lowercase()) => Ok(()),
            AddressKind::Private => Err(Refused::Private { host, address }),
            AddressKind::Reserved => Err(Refused::Reserved { host, address }),
        }
    }

    /// The addresses of a name. One that is not fine spoils them all: which one is connected to is not ours to choose.
    async fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, Boxed> {
        let found = self.names.look_up(name).await?;
        if found.is_empty() {
            return Err(Refused::NoAddress(name.to_owned()).into());
        }
        for address in &found {
            self.check(name, *address)?;
        }
        // The port is that of the URL.
        Ok(found
            .into_iter()
            .map(|address| SocketAddr::new(address, 0))
            .collect())
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let found = guard.addresses(name.as_str()).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// A host in the one spelling that URLs have for it: lower case, addresses in full.
fn host_of(entry: &str) -> Option<String> {
    let bracketed = if entry.contains(':') && !entry.starts_with('[') {
        format!("[{entry}]")
    } else {
        entry.to_owned()
    };
    let url = Url::parse(&format!("http://{bracketed}/")).ok()?;
    let only_host = url.path() == "/"
        && url.port().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && !entry.contains(['/', '\\', '@', '?', '#']);
    let host = url.host_str()?.trim_end_matches('.').to_owned();
    (only_host && !host.is_empty()).then_some(host)
}

fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Says something else every time it is asked.
    #[derive(Debug, Default)]
    struct Fickle {
        answers: Vec<Vec<&'static str>>,
        asked: AtomicUsize,
    }

    #[async_trait]
    impl Names for Fickle {
        async fn look_up(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            let asked = self.asked.fetch_add(1, Ordering::SeqCst);
            let answer = self.answers.get(asked).unwrap();
            Ok(answer.iter().map(|text| text.parse().unwrap()).collect())
        }
    }

    fn guard(allow: &[&str], answers: Vec<Vec<&'static str>>) -> (Guard, Arc<Fickle>) {
        let names = Arc::new(Fickle {
            answers,
            asked: AtomicUsize::new(0),
        });
        let allow: Vec<_> = allow.iter().map(|entry| (*entry).to_owned()).collect();
        let guard = Guard::new(Arc::<Fickle>::clone(&names), &allow).unwrap();
        (guard, names)
    }

    fn literal(guard: &Guard, host: &str) -> Result<(), Refused> {
        guard.check_literal(&Url::parse(&format!("http://{host}/x")).unwrap())
    }

    #[test]
    fn an_address_is_looked_at_however_it_is_spelt() {
        let (guard, _) = guard(&[], vec![]);
        for host in [
            "127.0.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "017700000001",
            "127.1",
            "127.0.0.1.",
            "%31%32%37.0.0.1",
            "１２７.0.0.1",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "[fd00::1]",
            "10.0.0.1",
            "0xa9fea9fe",
            "169.254.169.254",
            "0.0.0.0",
            "0",
            "[::]",
            "[fe80::1]",
        ] {
            assert!(literal(&guard, host).is_err(), "{host}");
        }
        for host in ["8.8.8.8", "134744072", "[2606:4700::1]", "example.com"] {
            assert_eq!(literal(&guard, host), Ok(()), "{host}");
        }
    }

    #[test]
    fn what_is_allowed_is_allowed_in_every_spelling_and_nothing_else_is() {
        let (guard, _) = guard(&["127.0.0.1", "::1", "Internal.Example.com."], vec![]);
        for host in ["127.0.0.1", "2130706433", "[::1]"] {
            assert_eq!(literal(&guard, host), Ok(()), "{host}");
        }
        for host in ["127.0.0.2", "10.0.0.1", "[::2]", "[::ffff:127.0.0.1]"] {
            assert!(literal(&guard, host).is_err(), "{host}");
        }
        for entry in [
            "",
            "a/b",
            "http://a",
            "a:80",
            "u@a",
            "a b",
            "[::1",
            "10.0.0.0/8",
            "a?b",
        ] {
            let refused = Guard::new(Arc::new(SystemNames), &[entry.to_owned()]);
            assert_eq!(refused.unwrap_err(), entry);
        }
    }

    #[tokio::test]
    async fn one_bad_address_spoils_a_name_and_a_name_never_allows_reserved_ones() {
        let refused = |error: Boxed| error.downcast::<Refused>().unwrap().to_string();
        let cases = [
            (
                "a.test",
                vec!["8.8.8.8", "10.0.0.1"],
                "`a.test` has the private address 10.0.0.1, and `allow_private` names neither",
            ),
            (
                "in.test",
                vec!["10.0.0.1", "169.254.169.254"],
                "`in.test` has the address 169.254.169.254, which is not for tools (link-local, multicast, reserved), and \
                 `allow_private` does not name it",
            ),
            ("in.test", vec![], "`in.test` has no address"),
        ];
        for (name, answer, expected) in cases {
            let (guard, _) = guard(&["in.test"], vec![answer]);
            let error = guard.addresses(name).await.unwrap_err();
            assert_eq!(refused(error), expected);
        }
        for (allow, name) in [("in.test", "IN.test."), ("10.0.0.1", "a.test")] {
            let (guard, _) = guard(&[allow], vec![vec!["10.0.0.1", "8.8.8.8"]]);
            assert_eq!(guard.addresses(name).await.unwrap().len(), 2);
        }
    }

    #[tokio::test]
    async fn a_name_is_resolved_once_and_what_was_looked_at_is_connected_to() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        // The second answer would be refused, the third would lead elsewhere: neither is asked for.
        let answers = vec![
            vec!["127.0.0.1"],
            vec!["169.254.169.254"],
            vec!["127.0.0.9"],
        ];
        let (guard, names) = guard(&["rebind.test"], answers);
        let client =
            super::super::exchange::client(guard, std::time::Duration::from_secs(10)).unwrap();
        let url = format!("http://rebind.test:{port}/");
        let sent = tokio::spawn(client.get(url).send());
        let (stream, peer) = server.accept().await.unwrap();
        assert!(peer.ip().is_loopback());
        drop(stream);
        assert!(sent.await.unwrap().is_err());
        assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    }
}
