//! The plan of one step: which rows of the dataset form which group, with which weights.

/// What is computed from the u of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// T(u) = log (1/n Σ exp u_j).
    LogMeanExp,
    /// T(u) = log-mean-exp(u) − ½ log-mean-exp(first half) − ½ log-mean-exp(second half), for an
    /// even number of atoms. Never negative.
    AntitheticDifference,
}

/// Atoms that share the x of one row of the dataset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// The row whose x is the context.
    pub context: u32,
    /// Where the group's atoms start in the plan.
    pub first: usize,
    /// Number of atoms.
    pub len: usize,
    /// Weight of −log q of the first atom.
    pub own: f64,
    /// Weight of the term.
    pub weight: f64,
    /// What is computed from all atoms.
    pub term: Term,
}

/// Groups and their atoms; made once and refilled for every step.
///
/// ```
/// use didyma::estimator::{Plan, Term};
/// let mut plan = Plan::default();
/// plan.push_own(7, 1.0); // −log q(θ₇ | x₇)
/// plan.push(7, 0.0, 1.0, Term::LogMeanExp, [1, 2, 3]); // three inner samples, same x
/// assert_eq!((plan.groups().len(), plan.pairs()), (2, 4));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Plan {
    groups: Vec<Group>,
    atoms: Vec<u32>,
}

impl Plan {
    /// Forgets all groups and keeps the memory.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.atoms.clear();
    }

    /// Adds a group of `atoms` (rows of θ) that share the x of row `context`.
    ///
    /// # Panics
    /// Without atoms, or with an odd number of them for an antithetic difference.
    pub fn push(
        &mut self,
        context: u32,
        own: f64,
        weight: f64,
        term: Term,
        atoms: impl IntoIterator<Item = u32>,
    ) {
        let first = self.atoms.len();
        self.atoms.extend(atoms);
        let len = self.atoms.len() - first;
        let even = term == Term::LogMeanExp || len.is_multiple_of(2);
        assert!(len > 0 && even, "a group has atoms, and an even number of them to be halved");
        self.groups.push(Group { context, first, len, own, weight, term });
    }

    /// Adds a row's own −log q(θ | x) with this weight.
    pub fn push_own(&mut self, row: u32, own: f64) {
        self.push(row, own, 0.0, Term::LogMeanExp, [row]);
    }

    /// Becomes a copy of `other` without allocating, if it has been as large before.
    pub fn copy_from(&mut self, other: &Self) {
        self.groups.clone_from(&other.groups);
        self.atoms.clone_from(&other.atoms);
    }

    /// The groups.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The atoms of a group.
    pub fn atoms(&self, group: &Group) -> &[u32] {
        &self.atoms[group.first..][..group.len]
    }

    /// Number of (θ, x) pairs.
    pub fn pairs(&self) -> usize {
        self.atoms.len()
    }

    /// The largest row number in use.
    pub fn last_row(&self) -> Option<u32> {
        let contexts = self.groups.iter().map(|g| g.context);
        contexts.chain(self.atoms.iter().copied()).max()
    }
}
