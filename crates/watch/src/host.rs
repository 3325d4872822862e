//! The host names that the server accepts. A web page can make its own host name resolve to this machine, and then read our responses as its own (DNS
//! rebinding). The browser sends the requested name, and the server refuses unknown names.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use becalm_units::printable;

/// A host name in requests; `*` stands for all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostName(String);

/// A text that is no name of a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is not the name of a host; give one like node1.example.org, without a port, or * for all", printable(.0))]
pub struct ParseHostNameError(String);

const ALL: &str = "*";

impl FromStr for HostName {
    type Err = ParseHostNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let name = text.strip_suffix('.').unwrap_or(text);
        if text == ALL || (!name.is_empty() && name.chars().all(is_plain)) {
            Ok(Self(name.to_ascii_lowercase()))
        } else {
            Err(ParseHostNameError(text.to_owned()))
        }
    }
}

/// The names that a server accepts.
#[derive(Clone, Debug)]
pub struct Hosts(Vec<HostName>);

impl Hosts {
    /// The names of a server that listens at this address of the machine `host`. A server on all addresses serves a network, which may know the
    /// machine under names that it does not know itself.
    pub fn new(listens_at: IpAddr, host: &str, allowed: &[HostName]) -> Self {
        let own = if listens_at.is_unspecified() { ALL } else { host };
        Self(
            ["localhost", own]
                .into_iter()
                .filter_map(|name| name.parse().ok())
                .chain(allowed.iter().cloned())
                .collect(),
        )
    }

    /// All names.
    pub fn all() -> Self {
        Self(vec![HostName(ALL.to_owned())])
    }

    /// Whether requests with this `Host` field are accepted. An IP address cannot be rebound.
    pub(crate) fn allow(&self, field: &str) -> bool {
        let field = field.trim();
        let is_port = |port: &str| port.strip_prefix(':').is_none_or(|port| port.bytes().all(|b| b.is_ascii_digit()));
        if let Some(rest) = field.strip_prefix('[') {
            let Some((address, port)) = rest.split_once(']') else { return false };
            return address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || port.starts_with(':')) && is_port(port);
        }
        let (host, port) = field.split_at(field.find(':').unwrap_or(field.len()));
        let is_known = |name: &HostName| {
            name.0 == ALL || host.parse::<HostName>().is_ok_and(|host| host.0 != ALL && host == *name)
        };
        is_port(port) && (host.parse::<IpAddr>().is_ok() || self.0.iter().any(is_known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_to_this_machine_from_elsewhere_is_refused() {
        let allowed = ["Metrics.example.org.".parse().unwrap()];
        let hosts = Hosts::new("127.0.0.1".parse().unwrap(), "node1", &allowed);
        for (field, is_allowed) in [
            ("localhost", true),
            ("LOCALHOST:9749", true),
            (" localhost. ", true),
            ("127.0.0.1:9749", true),
            ("192.0.2.1", true),
            ("[::1]:9749", true),
            ("[::1]", true),
            ("node1:9749", true),
            ("metrics.example.org:1", true),
            ("evil.example.org", false),
            ("evil.example.org:9749", false),
            ("localhost.evil.example.org", false),
            ("node1.evil.example.org", false),
            ("127.0.0.1.evil.example.org", false),
            ("127.0.0.1:9749.evil.example.org", false),
            ("[::1].evil.example.org", false),
            ("[::1]evil", false),
            ("[evil]:1", false),
            ("*", false),
            ("", false),
        ] {
            assert_eq!(hosts.allow(field), is_allowed, "{field}");
        }
        for all in [Hosts::new("0.0.0.0".parse().unwrap(), "node1", &[]), Hosts::new("::".parse().unwrap(), "", &[])] {
            assert!(all.allow("any.example.org:80") && all.allow("localhost"));
        }
        assert!(Hosts::new("::1".parse().unwrap(), "", &["*".parse().unwrap()]).allow("any.example.org"));
        for text in ["", ".", "a b", "a:1", "http://a", "a/", "**"] {
            assert!(text.parse::<HostName>().unwrap_err().to_string().contains("is not the name of a host"), "{text}");
        }
    }
}
