//! Secrets are made and compared here, and nowhere else.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// How long a key is, in bytes.
pub(crate) const KEY_LEN: usize = 32;

/// Whether both are the same, found out in the same time whatever they are.
pub(crate) fn same(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}

/// What only whoever has the key can say of a message. What is said in one domain means nothing in another.
pub(crate) fn signature(key: &[u8; KEY_LEN], domain: &str, message: &[u8]) -> [u8; 32] {
    hmac(key, &[domain.as_bytes(), b"\n", message])
}

/// HMAC-SHA256 of these parts, one after the other.
pub(crate) fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // As the algorithm pads keys, and shortens long ones.
    let mut block = [0; 64];
    match block.get_mut(..key.len()) {
        Some(room) => room.copy_from_slice(key),
        None => block[..32].copy_from_slice(&Sha256::digest(key)),
    }
    let mut mac = Hmac::<Sha256>::new(&block.into());
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_its_key_domain_and_message() {
        // HMAC-SHA256 of "d\nm" under 32 bytes of 0x0b, computed by another implementation.
        let expected = "1115ce5150268ad23e447c4cc1da0398192d2ce687eb22b18d3339dcc9d0ad5d";
        assert_eq!(
            holdpoint_core::hex(&signature(&[0x0b; KEY_LEN], "d", b"m")),
            expected
        );
        let other = signature(&[0x0c; KEY_LEN], "d", b"m");
        assert!(!same(&other, &signature(&[0x0b; KEY_LEN], "d", b"m")));
        assert!(!same(b"ab", b"abc") && same(b"ab", b"ab"));
    }
}
