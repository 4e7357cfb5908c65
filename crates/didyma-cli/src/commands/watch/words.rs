//! Lines that fit, and numbers that can be read at a glance.

/// The text in lines that are broken at separators only; all but the first are set in.
pub fn wrapped(text: &str, separator: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(separator) {
        match lines.last_mut() {
            Some(line) if letters(line) + separator.len() + letters(word) <= width => {
                line.push_str(separator);
                line.push_str(word);
            }
            Some(_) => lines.push(format!("    {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Characters, each one column wide.
pub fn letters(text: &str) -> usize {
    text.chars().count()
}

/// Columns of the longest of these.
pub fn longest<'a>(texts: impl IntoIterator<Item = &'a String>) -> usize {
    texts.into_iter().map(|text| letters(text)).max().unwrap_or(0)
}

/// A number with four digits that count.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{value:.3e}");
    }
    let decimals = (3 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_where_they_may_be() {
        assert_eq!(wrapped("aa bb cc", " ", 5), ["aa bb", "    cc"]);
        assert_eq!(wrapped("a b  cc  dd", "  ", 7), ["a b  cc", "    dd"]);
        assert_eq!(wrapped("longer", " ", 3), ["longer"]);
    }

    #[test]
    fn numbers_have_four_digits() {
        let numbers = [0.0, 1.0, -0.24749, 1234.56, 0.00123456, 1.5e-7, 2e9, f64::INFINITY];
        let texts = ["0", "1", "-0.2475", "1235", "0.001235", "1.500e-7", "2.000e9", "inf"];
        assert_eq!(numbers.map(short), texts);
    }
}
