//! Which addresses a tool may talk to without being told so.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressKind {
    /// Anybody's: the Internet.
    Public,
    /// Of this machine or this network: loopback, private, shared (carrier-grade NAT), unique local.
    Private,
    /// No host that a tool should name: link-local (the metadata services of clouds among them), multicast, broadcast,
    /// unspecified, documentation, and whatever is reserved.
    Reserved,
}

impl AddressKind {
    /// What this address is for. One that carries another inside is no better than that one.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> AddressKind {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (10 | 127, _, _) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => {
            AddressKind::Private
        }
        // This network; link-local; protocol assignments; documentation; 6to4 relays; benchmarks; multicast, reserved
        // and broadcast.
        (0, _, _)
        | (169, 254, _)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18 | 19, _)
        | (198, 51, 100)
        | (203, 0, 113)
        | (224..=255, _, _) => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressKind {
    let segments = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        of_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Private,
        // IPv4-mapped: connecting to it is connecting to the IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low] => v4(high, low),
        // NAT64: a translator connects to the IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0xfc00..=0xfdff, ..] => AddressKind::Private,
        // 6to4: a relay does.
        [0x2002, high, low, ..] => v4(high, low),
        // Teredo: the server's address, and the client's with all bits turned.
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            v4(high, low).max(v4(!client_high, !client_low))
        }
        // Protocol assignments; documentation, twice.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            AddressKind::Reserved
        }
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        // Nothing else is given to hosts on the Internet: IPv4-compatible, local NAT64, link-local, site-local, multicast.
        _ => AddressKind::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_on_the_internet_is_public() {
        use AddressKind::{Private, Public, Reserved};
        let cases = [
            ("8.8.8.8", Public),
            ("1.1.1.1", Public),
            ("100.63.255.255", Public),
            ("100.128.0.0", Public),
            ("172.15.255.255", Public),
            ("172.32.0.0", Public),
            ("192.0.1.1", Public),
            ("192.167.255.255", Public),
            ("223.255.255.255", Public),
            ("127.0.0.1", Private),
            ("127.255.255.254", Private),
            ("10.0.0.5", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.1.1", Private),
            ("100.64.0.1", Private),
            ("100.127.255.255", Private),
            ("0.0.0.0", Reserved),
            ("0.1.2.3", Reserved),
            ("169.254.169.254", Reserved),
            ("169.254.0.1", Reserved),
            ("192.0.0.1", Reserved),
            ("192.0.2.1", Reserved),
            ("192.88.99.1", Reserved),
            ("198.18.0.1", Reserved),
            ("198.19.255.255", Reserved),
            ("198.51.100.1", Reserved),
            ("203.0.113.1", Reserved),
            ("224.0.0.1", Reserved),
            ("239.255.255.255", Reserved),
            ("240.0.0.1", Reserved),
            ("255.255.255.255", Reserved),
            ("2606:4700:4700::1111", Public),
            ("2a00:1450:4001::1", Public),
            ("2001:4860:4860::8888", Public),
            ("::", Reserved),
            ("::1", Private),
            ("fc00::1", Private),
            ("fd12:3456::1", Private),
            ("fe80::1", Reserved),
            ("febf::1", Reserved),
            ("fec0::1", Reserved),
            ("ff02::1", Reserved),
            ("2001:db8::1", Reserved),
            ("3fff::1", Reserved),
            ("100::1", Reserved),
            ("2001:2::1", Reserved),
            ("2001:20::1", Reserved),
            ("4000::1", Reserved),
            // IPv4-mapped.
            ("::ffff:8.8.8.8", Public),
            ("::ffff:127.0.0.1", Private),
            ("::ffff:10.0.0.1", Private),
            ("::ffff:169.254.169.254", Reserved),
            ("::ffff:0.0.0.0", Reserved),
            // IPv4-compatible.
            ("::127.0.0.1", Reserved),
            ("::8.8.8.8", Reserved),
            // NAT64, and its local kind.
            ("64:ff9b::8.8.8.8", Public),
            ("64:ff9b::10.0.0.1", Private),
            ("64:ff9b::169.254.169.254", Reserved),
            ("64:ff9b:1::8.8.8.8", Reserved),
            // 6to4.
            ("2002:0808:0808::1", Public),
            ("2002:7f00:0001::1", Private),
            ("2002:a9fe:a9fe::1", Reserved),
            // Teredo: the server's and the client's address.
            ("2001:0:808:808:0:0:f7f7:f7f7", Public),
            ("2001:0:808:808:0:0:80ff:fffe", Private),
            ("2001:0:a00:1:0:0:f7f7:f7f7", Private),
            ("2001:0:808:808:0:0:5601:5601", Reserved),
        ];
        for (address, expected) in cases {
            let parsed = address.parse().unwrap();
            assert_eq!(AddressKind::of(parsed), expected, "{address}");
        }
    }
}
