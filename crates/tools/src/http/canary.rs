//! Addresses that nobody outside may have us talk to, and a canary that is told of every connection.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::TcpListener;

use super::{
    guard::Names,
    outbound::{Outbound, Patience},
};

/// Hosts as they stand in a URL. All of them are this machine, its network, or nowhere.
const HOSTS: [&str; 76] = [
    // This machine, as an address of IPv4 in the spellings that URLs have for it.
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "127.1.2.3",
    "2130706433",
    "2130706434",
    "0x7f000001",
    "0x7F000001",
    "0x7f.0x0.0x0.0x1",
    "0x7f.1",
    "0x7f.0.1",
    "0177.0.0.1",
    "0177.0.0.01",
    "0177.1",
    "017700000001",
    "0x7f.000.00.1",
    "127.0x0.0.1",
    "127.00.00.01",
    "%31%32%37.0.0.1",
    "%31%32%37%2e%30%2e%30%2e%31",
    "１２７.0.0.1",
    "127。0。0。1",
    "127．0．0．1",
    "①②⑦.0.0.1",
    "0.0.0.0",
    "0",
    "0x0",
    "00",
    "0.0",
    "0.0.0.1",
    // The same in IPv6.
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::0001]",
    "[::0:1]",
    "[::]",
    "[0::0]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:0001]",
    "[::FFFF:127.0.0.2]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:7f00:0001::1]",
    "[2001:0:0:0:0:0:80ff:fffe]",
    // Networks of others that are nobody's on the Internet.
    "10.0.0.1",
    "10.255.255.255",
    "0xa000001",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.1.254",
    "3232235777",
    "100.64.0.1",
    "100.127.255.254",
    "198.18.0.1",
    "192.0.2.1",
    "198.51.100.7",
    "203.0.113.9",
    "[fc00::1]",
    "[fd12:3456:789a::1]",
    // What clouds keep their secrets at, and what is nobody's address.
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
    "[fe80::1]",
    "[::ffff:169.254.169.254]",
    "224.0.0.1",
    "255.255.255.255",
];

/// Names, and what they resolve to.
const NAMES: [(&str, &[&str]); 24] = [
    ("localhost", &["127.0.0.1"]),
    ("LOCALHOST", &["127.0.0.1"]),
    ("localhost.", &["127.0.0.1", "::1"]),
    ("ip6-localhost", &["::1"]),
    ("a.localhost", &["127.0.0.1"]),
    ("localtest.example", &["127.0.0.1"]),
    ("127.0.0.1.nip.example", &["127.0.0.1"]),
    ("lan.example", &["10.0.0.1"]),
    ("lan6.example", &["fd00::1"]),
    ("mapped.example", &["::ffff:127.0.0.1"]),
    ("compatible.example", &["::127.0.0.1"]),
    ("nat64.example", &["64:ff9b::7f00:1"]),
    ("sixtofour.example", &["2002:7f00:1::"]),
    ("metadata.example", &["169.254.169.254"]),
    ("any.example", &["0.0.0.0"]),
    ("any6.example", &["::"]),
    ("link.example", &["fe80::1"]),
    ("multicast.example", &["224.0.0.1"]),
    ("carrier.example", &["100.64.0.1"]),
    // One of several is enough, wherever it stands.
    ("first.example", &["127.0.0.1", "93.184.216.34"]),
    ("last.example", &["93.184.216.34", "127.0.0.1"]),
    ("both.example", &["2606:2800:220:1::1", "::1"]),
    ("mixed.example", &["93.184.216.34", "10.1.2.3", "8.8.8.8"]),
    ("nothing.example", &[]),
];

/// A resolver that knows these names, and those that change their minds: public when first asked, and this machine after
/// that.
#[derive(Debug, Default)]
struct Liar {
    asked: AtomicUsize,
}

#[async_trait]
impl Names for Liar {
    async fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let known: BTreeMap<&str, &[&str]> = NAMES.into_iter().collect();
        let rebinding: &[&str] = match name {
            "rebinding.example" if asked == 0 => &["93.184.216.34"],
            "rebinding.example" => &["127.0.0.1"],
            _ => known.get(name).copied().unwrap_or(&["127.0.0.1"]),
        };
        Ok(rebinding.iter().map(|it| it.parse().unwrap()).collect())
    }
}

impl Resolve for Liar {
    fn resolve(&self, name: Name) -> Resolving {
        let asked = self.asked.load(Ordering::SeqCst);
        let liar = Self {
            asked: AtomicUsize::new(asked),
        };
        Box::pin(async move {
            let found = liar.look_up(name.as_str()).await?;
            let found = found.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

/// Counts who connects, at a port of this machine under both its families.
struct Canary {
    port: u16,
    seen: Arc<AtomicUsize>,
}

impl Canary {
    async fn new() -> Self {
        let four = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = four.local_addr().unwrap().port();
        let six = TcpListener::bind(("::1", port)).await.ok();
        let seen = Arc::new(AtomicUsize::new(0));
        for listener in std::iter::once(four).chain(six) {
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                while listener.accept().await.is_ok() {
                    seen.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        Self { port, seen }
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }

    fn urls(&self) -> Vec<String> {
        let names = NAMES.map(|(name, _)| name);
        let hosts = HOSTS.into_iter().chain(names);
        let port = self.port;
        hosts
            .map(|host| format!("https://{host}:{port}/x"))
            .collect()
    }
}

const BRIEF: Duration = Duration::from_millis(300);

#[tokio::test]
async fn no_address_of_a_hundred_has_us_talk_to_a_canary() {
    let canary = Canary::new().await;
    let outbound = Outbound::with_names(Arc::new(Liar::default()), &[]).unwrap();
    let urls = canary.urls();
    assert_eq!(urls.len(), 100);
    for url in &urls {
        let refused = outbound.post(url, &[], "{}".to_owned(), BRIEF).await;
        let why = refused.unwrap_err().to_string();
        let is_looked_at = [
            "private address",
            "not for tools",
            "no address",
            "not a URL",
        ]
        .iter()
        .any(|reason| why.contains(reason));
        assert!(is_looked_at, "{url}: {why}");
        let patience = Patience {
            bytes: 10,
            time: BRIEF,
        };
        outbound.get(url, patience).await.unwrap_err();
        // Without encryption it is refused for that alone.
        let plain = url.replacen("https", "http", 1);
        let plain = outbound.post(&plain, &[], "{}".to_owned(), BRIEF).await;
        assert!(plain.is_err(), "{url}");
    }
    assert_eq!(canary.seen(), 0);
}

#[tokio::test]
async fn a_client_that_looks_at_no_address_talks_to_the_canary_again_and_again() {
    let canary = Canary::new().await;
    let careless = reqwest::Client::builder()
        .no_proxy()
        .timeout(BRIEF)
        .dns_resolver(Liar::default())
        .build()
        .unwrap();
    for url in canary.urls() {
        let _ = careless.post(&url).body("{}").send().await;
    }
    // NEGATIVE CONTROL: the same addresses lead there.
    assert!(canary.seen() >= 40, "{}", canary.seen());
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_asked_once_and_taken_at_its_word() {
    let canary = Canary::new().await;
    let url = format!("https://rebinding.example:{}/x", canary.port);
    let liar = Arc::new(Liar::default());
    let names: Arc<dyn Names> = Arc::<Liar>::clone(&liar);
    let outbound = Outbound::with_names(names, &[]).unwrap();
    // The first answer is public, and so is where it connects to, if that can be reached at all.
    let first = outbound.post(&url, &[], "{}".to_owned(), BRIEF).await;
    assert!(first.is_err());
    assert_eq!(liar.asked.load(Ordering::SeqCst), 1);
    // The next request looks at what the name says then.
    for _ in 0..10 {
        let later = outbound.post(&url, &[], "{}".to_owned(), BRIEF).await;
        let why = later.unwrap_err().to_string();
        assert!(why.contains("private address 127.0.0.1"), "{why}");
    }
    assert_eq!(canary.seen(), 0);
}
