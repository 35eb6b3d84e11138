//! Names of objects.

use std::fmt;
use std::io::Read;

use sha1::Digest as _;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// By which hash a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectFormat {
    /// SHA-1, 20 bytes: the default.
    Sha1,
    /// SHA-256, 32 bytes.
    Sha256,
}

impl ObjectFormat {
    /// How many bytes a name has.
    pub fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// From Git's own word for it.
    pub(crate) fn from_word(word: &[u8]) -> Option<Self> {
        match word {
            b"sha1" => Some(Self::Sha1),
            b"sha256" => Some(Self::Sha256),
            _ => None,
        }
    }
}

/// The name of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectId {
    /// Of a repository whose format is [`ObjectFormat::Sha1`].
    Sha1([u8; 20]),
    /// Of a repository whose format is [`ObjectFormat::Sha256`].
    Sha256([u8; 32]),
}

impl ObjectId {
    /// From 20 or 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let short = bytes.try_into().ok().map(Self::Sha1);
        short.or_else(|| bytes.try_into().ok().map(Self::Sha256))
    }

    /// From 40 or 64 hexadecimal digits in lower case, as Git writes them.
    pub fn from_hex(text: &[u8]) -> Option<Self> {
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        let (pairs, rest) = text.as_chunks::<2>();
        let bytes: Vec<u8> = pairs
            .iter()
            .map(|[high, low]| Some((digit(*high)? << 4) | digit(*low)?))
            .collect::<Option<_>>()?;
        if rest.is_empty() { Self::from_bytes(&bytes) } else { None }
    }

    /// The name that `size` bytes have as a file's content, as they are: no filter is asked.
    ///
    /// # Errors
    /// What kept them from being read; also when there are more or fewer than `size`.
    pub fn of_content(
        format: ObjectFormat,
        size: u64,
        content: &mut dyn Read,
    ) -> std::io::Result<Self> {
        let head = format!("blob {size}\0");
        match format {
            ObjectFormat::Sha1 => {
                Ok(Self::Sha1(hash(sha1::Sha1::new_with_prefix(head), size, content)?))
            }
            ObjectFormat::Sha256 => {
                Ok(Self::Sha256(hash(sha2::Sha256::new_with_prefix(head), size, content)?))
            }
        }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Sha1(bytes) => bytes,
            Self::Sha256(bytes) => bytes,
        }
    }

    /// Its hash.
    pub fn format(&self) -> ObjectFormat {
        match self {
            Self::Sha1(_) => ObjectFormat::Sha1,
            Self::Sha256(_) => ObjectFormat::Sha256,
        }
    }

    /// Whether all its bytes are zero: Git's way to say that there is none.
    pub fn is_null(&self) -> bool {
        self.as_bytes().iter().all(|byte| *byte == 0)
    }
}

fn hash<D: sha1::Digest, const N: usize>(
    mut hasher: D,
    size: u64,
    content: &mut dyn Read,
) -> std::io::Result<[u8; N]> {
    let mut buffer = vec![0; 64 << 10];
    let mut read = 0_u64;
    loop {
        let piece = match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => buffer.get(..count).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(piece);
        read = read.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
    }
    let bytes = hasher.finalize();
    match <[u8; N]>::try_from(bytes.as_slice()) {
        Ok(bytes) if read == size => Ok(bytes),
        _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}

/// In hexadecimal digits, all of them.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit =
            |half: u8| DIGITS.get(usize::from(half)).map_or('0', |digit| char::from(*digit));
        let digits = self.as_bytes().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
        let text: String = digits.collect();
        f.write_str(&text)
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_have_the_names_that_git_gives_them() {
        let name = |format, mut bytes: &[u8]| {
            ObjectId::of_content(format, bytes.len() as u64, &mut bytes).unwrap().to_string()
        };
        let empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        assert_eq!(name(ObjectFormat::Sha1, b""), empty);
        let hello = "ce013625030ba8dba906f756967f9e9ca394464a";
        assert_eq!(name(ObjectFormat::Sha1, b"hello\n"), hello);
        let empty = "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813";
        assert_eq!(name(ObjectFormat::Sha256, b""), empty);
        ObjectId::of_content(ObjectFormat::Sha1, 1, &mut &b"two"[..]).unwrap_err();
    }

    #[test]
    fn digits_and_bytes_name_the_same() {
        for digits in ["0123456789abcdef0123456789abcdef01234567".to_owned(), "f0".repeat(32)] {
            let id = ObjectId::from_hex(digits.as_bytes()).unwrap();
            assert_eq!(id.to_string(), digits);
            assert_eq!(ObjectId::from_bytes(id.as_bytes()), Some(id));
            assert_eq!(id.as_bytes().len(), id.format().length());
        }
        assert!(ObjectId::from_hex("0".repeat(40).as_bytes()).unwrap().is_null());
        for bad in ["", "ab", &"g".repeat(40), &"A".repeat(40), &"a".repeat(41)] {
            assert_eq!(ObjectId::from_hex(bad.as_bytes()), None, "{bad}");
        }
    }
}
