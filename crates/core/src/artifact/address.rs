//! By what a long result is asked for.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{ActionId, hex};

/// Names a result that is kept apart, within a thread: `artifact://NAME/vN`.
///
/// NAME is up to 128 letters, digits, `_` and `-`; N is a number from 1 on, without leading zeros.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactAddress {
    name: String,
    version: u32,
}

/// A text names no result that is kept apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not of the form artifact://NAME/vN")]
pub struct BadAddress(String);

impl ArtifactAddress {
    /// What every address begins with.
    pub const SCHEME: &'static str = "artifact://";

    /// How long a name may be.
    const MAX_NAME: usize = 128;
    /// How much of a tool's name is in it.
    const MAX_TOOL: usize = 64;

    /// The address of what an attempt at an action reported.
    #[must_use]
    pub fn of_result(tool: &str, action: ActionId, attempt: u32) -> Self {
        Self::new(tool, action, "", attempt)
    }

    /// The address of what a tool said, when it was asked, that an attempt had come to.
    #[must_use]
    pub fn of_receipt(tool: &str, action: ActionId, attempt: u32) -> Self {
        Self::new(tool, action, "-receipt", attempt)
    }

    fn new(tool: &str, action: ActionId, suffix: &str, attempt: u32) -> Self {
        let spelt = |it: char| if is_plain(it) { it } else { '_' };
        let tool: String = tool.chars().map(spelt).take(Self::MAX_TOOL).collect();
        // The half of the id that is drawn. The other one is the time.
        let id = hex(&action.as_bytes()[8..]);
        Self {
            name: format!("{tool}-{id}{suffix}"),
            version: attempt.max(1),
        }
    }

    /// Reads a name and a version, as paths have them: `NAME` and `vN`.
    ///
    /// # Errors
    ///
    /// They are none.
    pub fn of_parts(name: &str, version: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(format!("{}{name}/{version}", Self::SCHEME));
        let is_name = (1..=Self::MAX_NAME).contains(&name.len()) && name.chars().all(is_plain);
        let digits = version.strip_prefix('v').ok_or_else(bad)?;
        let is_number =
            !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(version) if is_name && is_number => Ok(Self {
                name: name.to_owned(),
                version,
            }),
            Ok(_) | Err(_) => Err(bad()),
        }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which version of it.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

impl fmt::Display for ArtifactAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}/v{}", Self::SCHEME, self.name, self.version)
    }
}

impl FromStr for ArtifactAddress {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(text.to_owned());
        let path = text.strip_prefix(Self::SCHEME).ok_or_else(bad)?;
        let (name, version) = path.split_once('/').ok_or_else(bad)?;
        Self::of_parts(name, version)
    }
}

impl Serialize for ArtifactAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ArtifactAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ACTION: ActionId = ActionId::from_bytes([9; 16]);

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn an_address_is_read_as_it_is_written(tool in "\\PC{0,90}", attempt in 1..u32::MAX) {
            for address in [
                ArtifactAddress::of_result(&tool, ACTION, attempt),
                ArtifactAddress::of_receipt(&tool, ACTION, attempt),
            ] {
                let text = address.to_string();
                prop_assert_eq!(text.parse::<ArtifactAddress>(), Ok(address));
            }
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("artifact://{}/v1", "a".repeat(129));
        for text in [
            "",
            "artifact://",
            "artifact://a",
            "artifact://a/",
            "artifact://a/1",
            "artifact://a/v",
            "artifact://a/v0",
            "artifact://a/v01",
            "artifact://a/v+1",
            "artifact://a/v-1",
            "artifact://a/v1/",
            "artifact://a/v1 ",
            " artifact://a/v1",
            "artifact://a/v4294967296",
            "artifact:///v1",
            "artifact://a/b/v1",
            "artifact://../v1",
            "artifact://a%2f/v1",
            "artifact://é/v1",
            "ARTIFACT://a/v1",
            "artifact:/a/v1",
            &long,
        ] {
            assert!(text.parse::<ArtifactAddress>().is_err(), "{text}");
        }
        assert!(
            "artifact://a-b_C9/v4294967295"
                .parse::<ArtifactAddress>()
                .is_ok()
        );
    }
}
