//! The words of a command, with places for what changes from one simulation to the next.

use crate::error::{Error, Result};
use std::collections::{HashMap, HashSet};

/// A word of a command: texts and places in turn.
#[derive(Clone, Debug)]
pub(super) struct Word(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Place(Place),
}

/// What a place stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Parameter(usize),
    Seed,
    Input,
    Output,
}

/// Names of places that no parameter can have.
const OTHERS: [(&str, Place); 3] =
    [("seed", Place::Seed), ("input", Place::Input), ("output", Place::Output)];

/// Reads a command; `{{` and `}}` are braces.
pub(super) fn parse(command: &[String], parameters: &[String]) -> Result<Vec<Word>> {
    if let Some(name) = parameters.iter().find(|name| OTHERS.iter().any(|(other, _)| name == other))
    {
        let expected =
            "another: {seed}, {input} and {output} have a meaning of their own in a command";
        return Err(Error::setting("a parameter's name", name, expected));
    }
    let own = parameters.iter().enumerate().map(|(i, name)| (&**name, Place::Parameter(i)));
    let known: HashMap<&str, Place> = OTHERS.into_iter().chain(own).collect();
    let unknown = |name: &str| unknown(name, parameters);
    let words: Vec<Word> =
        command.iter().map(|word| parse_word(word, &known, &unknown)).collect::<Result<_>>()?;
    let seen: HashSet<Place> = places(&words).collect();
    let unseen = |i: &usize| !seen.contains(&Place::Parameter(*i));
    if let Some(i) = (0..parameters.len()).find(unseen).filter(|_| !seen.contains(&Place::Input)) {
        let expected = format!(
            "a command with {{{}}} or {{input}} in it: it would not know that parameter",
            parameters[i]
        );
        return Err(Error::setting("command", command.join(" "), expected));
    }
    Ok(words)
}

/// Whether the command has such a place.
pub(super) fn has(words: &[Word], place: Place) -> bool {
    places(words).any(|found| found == place)
}

fn places(words: &[Word]) -> impl Iterator<Item = Place> {
    words.iter().flat_map(|word| &word.0).filter_map(|part| match part {
        Part::Place(place) => Some(*place),
        Part::Text(_) => None,
    })
}

fn parse_word(
    word: &str,
    known: &HashMap<&str, Place>,
    unknown: &impl Fn(&str) -> Error,
) -> Result<Word> {
    let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), word);
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            text.push_str(brace);
            rest = after;
        } else if brace == "}" {
            text.push('}');
            rest = after;
        } else {
            let end = after.find('}').ok_or_else(|| unknown(after))?;
            let place = known.get(&after[..end]).ok_or_else(|| unknown(&after[..end]))?;
            parts.push(Part::Text(std::mem::take(&mut text)));
            parts.push(Part::Place(*place));
            rest = &after[end + 1..];
        }
    }
    parts.push(Part::Text(text + rest));
    Ok(Word(parts))
}

fn unknown(name: &str, parameters: &[String]) -> Error {
    let known = parameters.iter().map(String::as_str).chain(OTHERS.map(|(name, _)| name));
    let known: Vec<String> = known.map(|name| format!("{{{name}}}")).collect();
    let expected = format!("one of {} (and {{{{ is a brace)", known.join(", "));
    Error::setting("a placeholder of command", format!("{{{name}}}"), expected)
}

impl Word {
    /// The word for one simulation.
    pub(super) fn fill(&self, value: impl Fn(Place) -> String) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Place(place) => value(*place),
        };
        self.0.iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    fn filled(word: &str) -> Result<String> {
        let words = parse(&strings(&[word, "{input}"]), &strings(&["a", "rate 2"]))?;
        Ok(words[0].fill(|place| format!("<{place:?}>")))
    }

    #[test]
    fn places_are_filled() {
        assert_eq!(filled("-r={rate 2},{seed}!").unwrap(), "-r=<Parameter(1)>,<Seed>!");
        assert_eq!(filled("{{a}} {a} }").unwrap(), "{a} <Parameter(0)> }");
        assert_eq!(filled("").unwrap(), "");
    }

    #[test]
    fn unknown_places_are_refused_with_the_known_ones() {
        for word in ["{b}", "{}", "{a", "{ a}"] {
            let told = filled(word).unwrap_err().to_string();
            assert!(told.contains("one of {a}, {rate 2}, {seed}, {input}, {output}"), "{told}");
        }
        let told = parse(&strings(&["run", "{a}"]), &strings(&["a", "b"])).unwrap_err().to_string();
        assert!(told.contains("{b} or {input}"), "{told}");
        assert!(parse(&strings(&["{seed}"]), &strings(&["seed"])).is_err());
    }
}
