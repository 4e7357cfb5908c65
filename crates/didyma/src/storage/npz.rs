//! Arrays in an `.npz` file, as `numpy.load` reads them: a zip archive that stores `.npy` files as they are.

use crate::error::{Error, Result};

/// Longest comment of a zip archive, in bytes.
const LONGEST_COMMENT: usize = u16::MAX as usize;
/// Ends a comment that was too long.
const CUT: &str = " … (cut)";
/// Version of the zip format that a reader must know: 2.0.
const ZIP_VERSION: u16 = 20;
/// 1 January 1980, the earliest date there is, so that the bytes do not depend on the clock.
const DATE: u16 = 1 << 5 | 1;
/// Length of the `.npy` header is a multiple of this, so that numbers can be mapped into memory.
const ALIGNMENT: usize = 64;
/// Magic bytes, version 1.0, and room for the length of the header.
const NPY_PREFIX: usize = 10;

/// One array: its name, its shape and its numbers, the last dimension fastest.
pub type Array<'a> = (&'a str, &'a [usize], &'a [f64]);

/// The bytes of an archive of these arrays; `comment` is cut if it is longer than a zip archive allows.
pub fn npz(arrays: &[Array], comment: &str) -> Result<Vec<u8>> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for &(name, shape, data) in arrays {
        let expected = shape.iter().product();
        if data.len() != expected {
            let (name, unit, why) = ("an array of the archive", "numbers", "by its shape");
            return Err(Error::Shape { name, unit, found: data.len(), expected, why });
        }
        let content = npy(shape, data);
        let name = format!("{}.npy", entry_name(name));
        let (offset, entry) = (size(bytes.len())?, entry(&name, &content)?);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&entry);
        bytes.extend(name.as_bytes());
        bytes.extend(content);
        directory.extend(b"PK\x01\x02");
        directory.extend(ZIP_VERSION.to_le_bytes());
        directory.extend(entry);
        // No comment, first disk, no attributes of either kind.
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (start, length) = (size(bytes.len())?, size(directory.len())?);
    let (count, comment) = (short("arrays", arrays.len())?, shortened(comment));
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count, count].map(u16::to_le_bytes).concat());
    bytes.extend([length, start].map(u32::to_le_bytes).concat());
    bytes.extend(short("comment", comment.len())?.to_le_bytes());
    bytes.extend(comment.as_bytes());
    Ok(bytes)
}

/// The name of an array as that of a file which stays in its folder: separators of paths become `%2F` and `%5C`, and a
/// percent sign `%25`, as in addresses, so that different names stay different.
fn entry_name(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F").replace('\\', "%5C")
}

/// What the header before a file and the directory say about it alike.
fn entry(name: &str, content: &[u8]) -> Result<Vec<u8>> {
    let (crc, size) = (crc32fast::hash(content), size(content.len())?);
    let mut entry = Vec::new();
    // Version, UTF-8 names, stored as it is, midnight of the date.
    entry.extend([ZIP_VERSION, 1 << 11, 0, 0, DATE].map(u16::to_le_bytes).concat());
    entry.extend([crc, size, size].map(u32::to_le_bytes).concat());
    // Length of the name and of what else there could be.
    entry.extend([short("name", name.len())?, 0].map(u16::to_le_bytes).concat());
    Ok(entry)
}

/// A whole `.npy` file.
fn npy(shape: &[usize], data: &[f64]) -> Vec<u8> {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    // A tuple of Python: one number alone needs its comma.
    let comma = if shape.len() == 1 { "," } else { "" };
    let shape = sizes.join(", ") + comma;
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
    let length = (NPY_PREFIX + header.len() + 1).next_multiple_of(ALIGNMENT) - NPY_PREFIX;
    header.extend(std::iter::repeat_n(' ', length - 1 - header.len()));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

fn shortened(comment: &str) -> String {
    match comment.len() > LONGEST_COMMENT {
        true => {
            let end = comment.floor_char_boundary(LONGEST_COMMENT - CUT.len());
            format!("{}{CUT}", &comment[..end])
        }
        false => comment.to_owned(),
    }
}

fn size(bytes: usize) -> Result<u32> {
    let expected = "less than 4 GiB: save fewer samples";
    u32::try_from(bytes).map_err(|_| Error::setting("size of the archive", bytes, expected))
}

fn short(what: &'static str, number: usize) -> Result<u16> {
    u16::try_from(number).map_err(|_| Error::setting(what, number, "at most 65535 in an archive"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn u16_at(bytes: &[u8], at: usize) -> usize {
        usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
    }

    fn u32_at(bytes: &[u8], at: usize) -> usize {
        u16_at(bytes, at) | u16_at(bytes, at + 2) << 16
    }

    /// Name and content of every file, as a reader finds them: from the end of the archive.
    fn files(bytes: &[u8], comment: usize) -> Vec<(String, Vec<u8>)> {
        let end = bytes.len() - comment - 22;
        assert_eq!(&bytes[end..end + 4], b"PK\x05\x06");
        assert_eq!(u16_at(bytes, end + 20), comment);
        let mut at = u32_at(bytes, end + 16);
        assert_eq!(at + u32_at(bytes, end + 12), end);
        let mut files = Vec::new();
        for _ in 0..u16_at(bytes, end + 10) {
            assert_eq!(&bytes[at..at + 4], b"PK\x01\x02");
            let name_length = u16_at(bytes, at + 28);
            let name = &bytes[at + 46..][..name_length];
            let local = u32_at(bytes, at + 42);
            assert_eq!(&bytes[local..local + 4], b"PK\x03\x04");
            assert_eq!(bytes[local + 4..local + 30], bytes[at + 6..at + 32], "both headers agree");
            assert_eq!(&bytes[local + 30..][..name_length], name);
            let content = &bytes[local + 30 + name_length..][..u32_at(bytes, at + 20)];
            assert_eq!(crc32fast::hash(content) as usize, u32_at(bytes, at + 16));
            files.push((String::from_utf8(name.to_vec()).unwrap(), content.to_vec()));
            at += 46 + name_length;
        }
        assert_eq!(at, end);
        files
    }

    #[test]
    fn arrays_are_found_as_numpy_looks_for_them() {
        let theta = [1.0, 2.0, 3.0, 4.0, 5.0, f64::MIN_POSITIVE];
        let bytes =
            npz(&[("theta", &[3, 2], &theta), ("log_q", &[1], &[0.5])], "{\"θ\":1}").unwrap();
        assert!(bytes.ends_with("{\"θ\":1}".as_bytes()));
        let files = files(&bytes, 8);
        assert_eq!((files[0].0.as_str(), files[1].0.as_str()), ("theta.npy", "log_q.npy"));
        for ((_, file), (shape, numbers)) in files.iter().zip([("(3, 2)", 6), ("(1,)", 1)]) {
            assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
            let start = 10 + u16_at(file, 8);
            assert_eq!((start % ALIGNMENT, file.len() - start), (0, 8 * numbers));
            let header = std::str::from_utf8(&file[10..start]).unwrap();
            assert!(header.ends_with('\n') && header.contains(shape), "{header}");
        }
        let last = files[0].1.last_chunk().unwrap();
        assert_eq!(f64::from_le_bytes(*last), f64::MIN_POSITIVE);
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let names = ["../../etc/x", "C:\\x", "m/s", "m%2Fs", "rate"];
        let arrays: Vec<Array> = names.iter().map(|&name| (name, &[1][..], &[1.0][..])).collect();
        let found: Vec<String> =
            files(&npz(&arrays, "").unwrap(), 0).into_iter().map(|(name, _)| name).collect();
        let expected = ["..%2F..%2Fetc%2Fx", "C:%5Cx", "m%2Fs", "m%252Fs", "rate"];
        assert_eq!(found, expected.map(|name| format!("{name}.npy")));
    }

    #[test]
    fn long_comments_are_cut_between_letters_and_wrong_shapes_are_refused() {
        let bytes = npz(&[], &"θ".repeat(40_000)).unwrap();
        let start = 22;
        let comment = std::str::from_utf8(&bytes[start..]).unwrap();
        assert!(comment.len() <= LONGEST_COMMENT && comment.ends_with(CUT));
        assert!(files(&bytes, comment.len()).is_empty());
        let error = npz(&[("a", &[2, 2], &[1.0; 3])], "").unwrap_err().to_string();
        assert!(error.contains("3 numbers, but 4"), "{error}");
    }
}
