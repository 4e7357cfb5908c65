//! Five folds of shuffled rows, as scikit-learn cuts them.

/// Parts that take turns at being held out.
pub const FOLDS: usize = 5;

/// Places of a fold in the shuffled order; the first folds take what does not divide.
pub(crate) fn fold_rows(rows: usize, fold: usize) -> std::ops::Range<usize> {
    let (size, more) = (rows / FOLDS, rows % FOLDS);
    let start = |fold: usize| fold * size + fold.min(more);
    start(fold)..start(fold + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_those_of_scikit_learn() {
        let folds: Vec<_> = (0..FOLDS).map(|fold| fold_rows(13, fold)).collect();
        assert_eq!(folds, [0..3, 3..6, 6..9, 9..11, 11..13]);
    }
}
