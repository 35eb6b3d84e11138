//! Hexadecimal digits in lower case: the one spelling that stead writes and reads.

const DIGITS: [char; 16] =
    ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];

/// Two digits a byte.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    let digits = bytes.iter().flat_map(|b| [b >> 4, b & 15]);
    text.extend(digits.filter_map(|d| DIGITS.get(usize::from(d))));
    text
}

/// The bytes of an even number of digits; none for anything else, upper case included.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| DIGITS.iter().position(|d| *d == c).and_then(|at| u8::try_from(at).ok()))
        .collect::<Option<_>>()?;
    digits
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(high << 4 | low),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_one_spelling() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
        assert_eq!(encode(&[0, 0xab]), "00ab");
        for bad in ["a", "AB", "+f", "0x", "é", "g0"] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
    }
}
