//! How times and absent texts are spelled in JSON.

/// Points in time, as RFC 3339.
pub(crate) mod rfc3339 {
    use holdpoint_core::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    pub(crate) fn serialize<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        let time = jiff::Timestamp::from_microsecond(time.as_micros());
        time.map_err(ser::Error::custom)?.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(from)?;
        let time: jiff::Timestamp = text.parse().map_err(de::Error::custom)?;
        Ok(Timestamp::from_micros(time.as_microsecond()))
    }
}

/// The same where there may be none.
pub(super) mod rfc3339_option {
    use holdpoint_core::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Spelled(#[serde(with = "super::rfc3339")] Timestamp);

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(Spelled).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let spelled = Option::<Spelled>::deserialize(from)?;
        Ok(spelled.map(|Spelled(time)| time))
    }
}

/// Lengths of time, as a whole number of nanoseconds.
pub(super) mod nanos {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        let nanos = i64::try_from(time.as_nanos());
        nanos.map_err(ser::Error::custom)?.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let nanos = u64::try_from(i64::deserialize(from)?);
        let nanos = nanos.map_err(|_| de::Error::custom("`timeout` is negative"))?;
        Ok(Duration::from_nanos(nanos))
    }
}

/// The same where there may be none; 0 is none.
pub(super) mod nanos_option {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Spelled(#[serde(with = "super::nanos")] Duration);

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(Spelled).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        let spelled = Option::<Spelled>::deserialize(from)?;
        Ok(spelled
            .map(|Spelled(time)| time)
            .filter(|time| !time.is_zero()))
    }
}

/// A text that is empty where there is none.
pub(super) fn absent_if_empty<'de, D>(from: D) -> Result<Option<String>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let text: Option<String> = serde::Deserialize::deserialize(from)?;
    Ok(text.filter(|text| !text.is_empty()))
}
