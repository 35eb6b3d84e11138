//! Names of objects.

use std::fmt;

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
        let digit =
            |c: u8| DIGITS.iter().position(|d| *d == c).and_then(|at| u8::try_from(at).ok());
        let bytes: Vec<u8> = text
            .chunks(2)
            .map(|pair| match pair {
                [high, low] => Some((digit(*high)? << 4) | digit(*low)?),
                _ => None,
            })
            .collect::<Option<_>>()?;
        Self::from_bytes(&bytes)
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

/// In hexadecimal digits, all of them.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
