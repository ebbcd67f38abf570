//! How payloads and records become bytes of one column.
//!
//! The records of one append are one row: what a row costs PostgreSQL, in time and on the disk, is more than what a record
//! is. They are compressed here and not there, so that less travels and less is logged; PostgreSQL would do it only to rows
//! of two kilobytes and more, and takes ten times as long.
//!
//! The first byte says how the rest is kept: [`PLAIN`], or [`LZ4`] with the length that it has in the clear before it. In the
//! clear, every text stands behind its length; lengths are four bytes, the lowest first.

use holdpoint_core::{Codec, Digest, Payload, Record};

use super::row::Unreadable;

const PLAIN: u8 = 0;
const LZ4: u8 = 1;
/// What is shorter is not worth it.
const SHORT: usize = 128;
/// No input grows by more when it is decompressed, so whatever says so was not written here.
const GROWTH: usize = 256;

const SALT: usize = 16;
const HASH: usize = 32;

/// A payload as bytes.
pub(super) fn payload(payload: &Payload) -> Vec<u8> {
    let mut plain = vec![PLAIN];
    put_payload(&mut plain, payload);
    squeezed(plain)
}

/// The payload that was made into these bytes.
pub(super) fn read_payload(packed: &[u8]) -> Result<Payload, Unreadable> {
    let mut room = Vec::new();
    let mut rest = Rest(unsqueezed(packed, &mut room)?);
    let payload = rest.payload()?;
    rest.end()?;
    Ok(payload)
}

/// Records that follow on one another, as bytes.
pub(super) fn records(records: &[Record]) -> Vec<u8> {
    let mut plain = vec![PLAIN];
    for record in records {
        put(&mut plain, &record.header);
        plain.extend(record.salt);
        put_payload(&mut plain, &record.payload);
        plain.extend(record.hash.as_bytes());
    }
    squeezed(plain)
}

/// The records that were made into these bytes, of which the last one has this sequence.
pub(super) fn read_records(packed: &[u8], last: u64) -> Result<Vec<Record>, Unreadable> {
    let mut room = Vec::new();
    let mut rest = Rest(unsqueezed(packed, &mut room)?);
    let mut records = Vec::new();
    while !rest.0.is_empty() {
        records.push(Record {
            seq: 0,
            header: rest.text()?.to_vec(),
            salt: rest.fixed::<SALT>()?,
            payload: rest.payload()?,
            hash: Digest::from_bytes(rest.fixed::<HASH>()?),
        });
    }
    if records.is_empty() {
        return Err("a row holds no record".to_owned());
    }
    for (record, back) in records.iter_mut().rev().zip(0..) {
        let seq = last.checked_sub(back).filter(|seq| *seq > 0);
        record.seq = seq.ok_or_else(|| {
            format!("there are more records up to the one with number {last} than that")
        })?;
    }
    Ok(records)
}

fn put(plain: &mut Vec<u8>, text: &[u8]) {
    // INVARIANT: PostgreSQL takes no value of a gigabyte and more, so a length that does not fit is refused there.
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    plain.extend(length.to_le_bytes());
    plain.extend(text);
}

fn put_payload(plain: &mut Vec<u8>, payload: &Payload) {
    let Payload {
        codec,
        key_id,
        bytes,
    } = payload;
    plain.push(codec.number());
    // No key has an empty name.
    put(plain, key_id.as_deref().unwrap_or_default().as_bytes());
    put(plain, bytes);
}

/// What stands behind [`PLAIN`], in fewer bytes if there is a way.
fn squeezed(plain: Vec<u8>) -> Vec<u8> {
    let text = plain.get(1..).unwrap_or_default();
    if text.len() < SHORT {
        return plain;
    }
    let Ok(length) = u32::try_from(text.len()) else {
        return plain;
    };
    let mut squeezed = vec![0; 5 + lz4_flex::block::get_maximum_output_size(text.len())];
    squeezed[0] = LZ4;
    squeezed[1..5].copy_from_slice(&length.to_le_bytes());
    match lz4_flex::block::compress_into(text, &mut squeezed[5..]) {
        Ok(count) if 5 + count < plain.len() => {
            squeezed.truncate(5 + count);
            squeezed
        }
        _ => plain,
    }
}

fn unsqueezed<'a>(packed: &'a [u8], room: &'a mut Vec<u8>) -> Result<&'a [u8], Unreadable> {
    match packed {
        [PLAIN, text @ ..] => Ok(text),
        [LZ4, a, b, c, d, squeezed @ ..] => {
            let length = usize::try_from(u32::from_le_bytes([*a, *b, *c, *d]));
            let length = length
                .ok()
                .filter(|it| *it <= squeezed.len().saturating_mul(GROWTH));
            *room = vec![0; length.ok_or("a length is too large to be true")?];
            let count = lz4_flex::block::decompress_into(squeezed, room)
                .map_err(|error| format!("it cannot be decompressed: {error}"))?;
            if count != room.len() {
                return Err(format!("{count} bytes are there instead of {}", room.len()));
            }
            Ok(room)
        }
        [kind, ..] => Err(format!(
            "it is packed in a way (number {kind}) that this build does not know"
        )),
        [] => Err("nothing is there".to_owned()),
    }
}

/// What has not been read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| {
            format!(
                "it ends where {count} bytes should follow, and has {} more",
                self.0.len()
            )
        })?;
        self.0 = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let taken = self.take(N)?;
        taken
            .try_into()
            .map_err(|_| format!("{N} bytes are not there"))
    }

    fn text(&mut self) -> Result<&'a [u8], Unreadable> {
        let length = u32::from_le_bytes(self.fixed()?);
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn payload(&mut self) -> Result<Payload, Unreadable> {
        let [number] = self.fixed()?;
        let codec = Codec::from_number(number).ok_or_else(|| {
            format!("it is encoded in a way (number {number}) that this build does not know")
        })?;
        let key_id = std::str::from_utf8(self.text()?).map_err(|error| error.to_string())?;
        Ok(Payload {
            codec,
            key_id: (!key_id.is_empty()).then(|| key_id.to_owned()),
            bytes: self.text()?.to_vec(),
        })
    }

    fn end(&self) -> Result<(), Unreadable> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(format!("{more} bytes follow that do not belong to it")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seq: u64, text: &str, key_id: Option<&str>) -> Record {
        Record {
            seq,
            header: format!(r#"{{"type":"said","at":{seq}}}"#).into_bytes(),
            salt: [u8::try_from(seq).unwrap(); SALT],
            payload: Payload {
                codec: Codec::Json,
                key_id: key_id.map(str::to_owned),
                bytes: text.as_bytes().to_vec(),
            },
            hash: Digest::of(text.as_bytes()),
        }
    }

    /// Bytes in which nothing repeats itself.
    fn noise(count: usize) -> Vec<u8> {
        let digest = |n: usize| *Digest::of(&n.to_le_bytes()).as_bytes();
        (0..count.div_ceil(HASH))
            .flat_map(digest)
            .take(count)
            .collect()
    }

    #[test]
    fn what_was_packed_is_read_again() {
        let long = "请批准删除生产数据库。".repeat(500);
        let mut erased = record(8, "", None);
        erased.payload.codec = Codec::Erased;
        let all = [
            record(6, "{}", None),
            record(7, &long, Some("key 1")),
            erased,
        ];
        let packed = records(&all);
        assert!(packed.len() < long.len() / 4, "it is compressed");
        assert_eq!(read_records(&packed, 8).unwrap(), all);
        assert_eq!(read_records(&records(&all[..1]), 6).unwrap(), all[..1]);
        for record in &all {
            let packed = payload(&record.payload);
            assert_eq!(read_payload(&packed).unwrap(), record.payload);
        }
    }

    #[test]
    fn what_does_not_compress_takes_one_byte_more_than_in_the_clear() {
        let head = Payload::json(noise(3000));
        let packed = payload(&head);
        assert_eq!(packed.len(), 1 + 1 + 4 + 4 + 3000);
        assert_eq!(read_payload(&packed).unwrap(), head);
    }

    #[test]
    fn what_is_damaged_is_refused_and_never_more_than_that() {
        let long = "approve ".repeat(100);
        let all = [record(1, &long, None), record(2, "{}", Some("k"))];
        for packed in [records(&all), records(&all[1..])] {
            for end in 0..packed.len() {
                let cut = read_records(&packed[..end], 2);
                assert!(cut.is_err(), "cut at {end}: {cut:?}");
            }
            for place in 0..packed.len() {
                let mut changed = packed.clone();
                changed[place] ^= 0x80;
                assert_ne!(read_records(&changed, 2).as_deref(), Ok(all.as_slice()));
            }
        }
        let claim = [LZ4, 0xff, 0xff, 0xff, 0xff, 0];
        assert_eq!(
            read_payload(&claim).unwrap_err(),
            "a length is too large to be true"
        );
        assert_eq!(
            read_payload(&[7]).unwrap_err(),
            "it is packed in a way (number 7) that this build does not know"
        );
        let more = "there are more records up to the one with number 1 than that";
        assert_eq!(read_records(&records(&all), 1).unwrap_err(), more);
    }
}
