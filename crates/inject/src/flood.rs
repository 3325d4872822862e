//! Packets from this machine to itself, by which the time of a detour becomes the network's.
//!
//! A packet over loopback is received on the CPU that sends it, in the network's softirq (`net_rx`), as one is that a card's interrupt
//! announces.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use becalm_linux::clock::Counter;

/// What a packet carries.
const PAYLOAD: [u8; 64] = [0; 64];
/// How long a packet is waited for that is to show whether any arrives.
const ARRIVES_WITHIN: Duration = Duration::from_secs(1);

/// Sends packets to a port that only this process has.
#[derive(Debug)]
pub(crate) struct Flood {
    sender: UdpSocket,
    /// Nobody reads here: packets that find its buffer full end there, after all that the kernel does to receive them.
    _receiver: UdpSocket,
    /// The packets that were sent.
    pub sent: u64,
    /// What the last packet of this detour took, in ticks; zero before the first.
    took: u64,
}

impl Flood {
    /// Opens the port, and sees whether a packet arrives. Fails if there is no loopback, or what is sent there does not arrive.
    pub fn open() -> io::Result<Self> {
        let here = (Ipv4Addr::LOCALHOST, 0);
        let (receiver, sender) = (UdpSocket::bind(here)?, UdpSocket::bind(here)?);
        sender.connect(receiver.local_addr()?)?;
        // Nobody else's packets are let in.
        receiver.connect(sender.local_addr()?)?;
        receiver.set_read_timeout(Some(ARRIVES_WITHIN))?;
        sender.send(&PAYLOAD)?;
        receiver.recv(&mut [0; PAYLOAD.len()])?;
        // Where receiving is put off for long, what is under way fills the sender's buffer: then nothing is sent, instead of sleeping.
        sender.set_nonblocking(true)?;
        Ok(Self { sender, _receiver: receiver, sent: 0, took: 0 })
    }

    /// Another detour begins, which has one packet at least.
    pub const fn begin(&mut self) {
        self.took = 0;
    }

    /// Sends a packet if it will be over in this many ticks, as far as the one before tells. `now` is a reading just taken.
    pub fn send_within<C: Counter>(&mut self, ticks: u64, now: u64) {
        if ticks > self.took {
            self.sent += u64::from(self.sender.send(&PAYLOAD).is_ok());
            self.took = C::read().wrapping_sub(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_linux::clock::MonotonicRaw;

    #[test]
    fn a_detour_has_one_packet_and_as_many_more_as_fit() {
        let mut flood = Flood::open().unwrap();
        flood.begin();
        flood.send_within::<MonotonicRaw>(1, MonotonicRaw::read());
        assert_eq!(flood.sent, 1);
        // No packet is over so soon.
        flood.send_within::<MonotonicRaw>(1, MonotonicRaw::read());
        assert_eq!(flood.sent, 1);
        for _ in 0..10_000 {
            flood.send_within::<MonotonicRaw>(u64::MAX, MonotonicRaw::read());
        }
        assert_eq!(flood.sent, 10_001, "a full buffer refuses none");
        flood.begin();
        flood.send_within::<MonotonicRaw>(1, MonotonicRaw::read());
        assert_eq!(flood.sent, 10_002);
    }
}
