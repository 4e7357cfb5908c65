//! Colours: the meaning of a mark, and the place where it is seen.

/// Where a figure is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Inside a page, whose style sheet has the colours.
    Page,
    /// On its own.
    Alone,
}

/// The meaning of a mark, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Words and numbers.
    Text,
    /// Words and lines that matter less.
    Muted,
    /// Lines of the grid.
    Grid,
    /// Behind everything.
    Paper,
    /// The series of this number.
    Series(usize),
    /// A reference to compare with.
    Reference,
    /// A true or observed value.
    Truth,
    /// A step of the scale from too low to too high, whose middle is as it should be.
    Diverging(usize),
}

/// Colours that differ for the colour-blind too (after Okabe and Ito, 2008).
const SERIES: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#b3589a", "#8a6d00", "#3a8fc4"];

/// From blue by grey to brown: told apart by the colour-blind, and the farther from the middle, the stronger.
const DIVERGING: [&str; 7] =
    ["#084a91", "#3f86c4", "#9cc3e0", "#c9ccd1", "#f2b98a", "#dd7a2b", "#9c3a00"];

impl Ink {
    /// Number of series before their colours repeat.
    pub const SERIES: usize = SERIES.len();
    /// Number of steps of the scale from too low to too high.
    pub const DIVERGING: usize = DIVERGING.len();

    /// Its colour, as a style sheet or an attribute has it.
    pub fn colour(self, place: Place) -> String {
        let (variable, colour) = match self {
            Self::Text => ("--ink".to_owned(), "#1b1f24"),
            Self::Muted => ("--muted".to_owned(), "#57606a"),
            Self::Grid => ("--grid".to_owned(), "#dfe3e8"),
            Self::Paper => ("--paper".to_owned(), "#ffffff"),
            Self::Series(number) => {
                let number = number % SERIES.len();
                (format!("--series-{number}"), SERIES[number])
            }
            Self::Reference => ("--reference".to_owned(), "#6b7280"),
            Self::Truth => ("--truth".to_owned(), "#c1121f"),
            Self::Diverging(step) => {
                let step = step.min(DIVERGING.len() - 1);
                (format!("--diverging-{step}"), DIVERGING[step])
            }
        };
        match place {
            Place::Page => format!("var({variable})"),
            Place::Alone => colour.to_owned(),
        }
    }
}
