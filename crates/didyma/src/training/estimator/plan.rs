//! The plan of one step: which rows of the dataset form which group, and what is computed from them.

use crate::error::{Error, Result};
use std::ops::Range;

/// A weighted mean of log-mean-exps over equal blocks of a group's atoms.
///
/// Its value is weight · 1/blocks Σ_b log (1/size Σ_{j in block b} exp u_j), over the first `blocks`
/// consecutive runs of `size` atoms. In a group that shares its first atom, that atom is one more
/// member of every block, and the blocks are runs of the atoms after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// Weight of the mean.
    pub weight: f64,
    /// Atoms of a block, without a shared one.
    pub size: usize,
    /// Number of blocks.
    pub blocks: usize,
}

/// Atoms that share the x of one row of the dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The row whose x is the context.
    pub context: u32,
    /// Weight of −log q of the first atom.
    pub own: f64,
    /// Whether the first atom is a member of every block.
    pub shared: bool,
    /// Where the group's atoms are in the plan.
    pub atoms: Range<usize>,
    /// Where its terms are.
    pub terms: Range<usize>,
}

impl Group {
    /// Number of atoms, and so of (θ, x) pairs.
    pub fn pairs(&self) -> usize {
        self.atoms.len()
    }
}

/// Groups with their atoms and terms; made once and refilled for every step.
///
/// ```
/// use didyma::estimator::Plan;
/// let mut plan = Plan::default();
/// plan.push_own(7, 1.0); // −log q(θ₇ | x₇)
/// plan.group(7, [1, 2, 3]).log_mean_exp(1.0); // three inner samples, same x
/// plan.group(7, [4, 5, 6, 8]).antithetic_difference(2.5); // a correction with its weight
/// assert_eq!((plan.groups().len(), plan.pairs()), (3, 8));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Plan {
    groups: Vec<Group>,
    atoms: Vec<u32>,
    terms: Vec<Term>,
    /// One for each atom up to the last group that has any; beyond it every one is 0.
    log_weights: Vec<f64>,
    thinning: Option<Thinning>,
}

/// Permission to thin the backward pass.
///
/// A pair whose weight w in the gradient is below `below` may be left out at random: it is kept with probability
/// |w| / `below`, and then has the weight ± `below`, so that the gradient stays unbiased. Most atoms of a trained density
/// have almost no weight, and a backward pass costs twice a forward pass. Pairs are kept independently of each other, which
/// adds Σ |w| (`below` − |w|) ‖∇ log q‖² to the gradient's variance, the sum over the pairs below `below`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thinning {
    /// The weight from which on a pair is always kept.
    pub below: f64,
    /// Seed of the choice among the other pairs.
    pub seed: u64,
}

impl Plan {
    /// Forgets all groups and keeps the memory.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.atoms.clear();
        self.terms.clear();
        self.log_weights.clear();
        self.thinning = None;
    }

    /// Permits the backward pass to be thinned. An engine need not make use of it.
    pub fn thin(&mut self, thinning: Thinning) {
        self.thinning = Some(thinning);
    }

    /// The permission to thin the backward pass, if it was given.
    pub fn thinning(&self) -> Option<Thinning> {
        self.thinning
    }

    /// Adds a group of `atoms` (rows of θ) that share the x of row `context`; the returned handle
    /// says what is computed from them.
    ///
    /// # Panics
    /// Without atoms.
    pub fn group(&mut self, context: u32, atoms: impl IntoIterator<Item = u32>) -> GroupMut<'_> {
        let first = self.atoms.len();
        self.atoms.extend(atoms);
        assert!(self.atoms.len() > first, "a group has atoms");
        let atoms = first..self.atoms.len();
        let terms = self.terms.len()..self.terms.len();
        self.groups.push(Group { context, own: 0.0, shared: false, atoms, terms });
        GroupMut { plan: self }
    }

    /// Adds a row's own −log q(θ | x) with this weight.
    pub fn push_own(&mut self, row: u32, weight: f64) {
        self.group(row, [row]).own(weight);
    }

    /// Multiplies the weight of every −log q by that of its row.
    ///
    /// # Panics
    /// If a row has no weight.
    pub fn weigh_own(&mut self, weights: &[f64]) {
        for group in &mut self.groups {
            group.own *= weights[group.context as usize];
        }
    }

    /// Divides every Z by an estimate of E q/p̃ = 1 from the same atoms, with log p − log p̃ of every row: a second group with
    /// the same atoms and blocks for each one that has terms, with opposite weights. Z then has an error that both share
    /// taken out; it is no longer unbiased, but for many atoms.
    ///
    /// # Panics
    /// If the outer atom is a member of the blocks, or a row has no ratio.
    pub fn self_normalise(&mut self, ratios: &[f64]) {
        for index in 0..self.groups.len() {
            let Group { context, shared, atoms, terms, .. } = self.groups[index].clone();
            if terms.is_empty() {
                continue;
            }
            assert!(!shared, "atoms that are all inner samples");
            let (first, first_term) = (self.atoms.len(), self.terms.len());
            self.atoms.extend_from_within(atoms.clone());
            self.terms.extend_from_within(terms);
            self.terms[first_term..].iter_mut().for_each(|term| term.weight = -term.weight);
            self.log_weights.resize(first, 0.0);
            for atom in atoms {
                let ratio = ratios[self.atoms[atom] as usize];
                self.log_weights.push(self.log_weights[atom] + ratio);
            }
            let (atoms, terms) = (first..self.atoms.len(), first_term..self.terms.len());
            self.groups.push(Group { context, own: 0.0, shared, atoms, terms });
        }
    }

    /// The group that was added last.
    ///
    /// # Panics
    /// If there is none.
    pub fn last(&mut self) -> GroupMut<'_> {
        assert!(!self.groups.is_empty(), "a group was added");
        GroupMut { plan: self }
    }

    /// Becomes a copy of `other` without allocating, if it has been as large before.
    pub fn copy_from(&mut self, other: &Self) {
        self.groups.clone_from(&other.groups);
        self.atoms.clone_from(&other.atoms);
        self.terms.clone_from(&other.terms);
        self.log_weights.clone_from(&other.log_weights);
        self.thinning = other.thinning;
    }

    /// The groups.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The atoms of a group.
    pub fn atoms(&self, group: &Group) -> &[u32] {
        &self.atoms[group.atoms.clone()]
    }

    /// The terms of a group.
    pub fn terms(&self, group: &Group) -> &[Term] {
        &self.terms[group.terms.clone()]
    }

    /// What is added to log g of each atom of a group; nothing at all if every one is 0.
    pub fn log_weights(&self, group: &Group) -> &[f64] {
        self.log_weights.get(group.atoms.clone()).unwrap_or(&[])
    }

    /// Number of (θ, x) pairs.
    pub fn pairs(&self) -> usize {
        self.atoms.len()
    }

    /// Refuses a plan without groups, and rows that a dataset does not have: it has `rows`, of which the first `contexts` have
    /// an x.
    pub fn check(&self, rows: usize, contexts: usize) -> Result<()> {
        let within = |last: Option<u32>, rows: usize| match last {
            None => Err(Error::EmptyPlan),
            Some(row) if row as usize >= rows => Err(Error::NoSuchRow { row: row as usize, rows }),
            Some(_) => Ok(()),
        };
        within(self.groups.iter().map(|group| group.context).max(), contexts)?;
        within(self.atoms.iter().copied().max(), rows)
    }
}

/// The group that was added last, for saying what is computed from it.
#[derive(Debug)]
pub struct GroupMut<'a> {
    plan: &'a mut Plan,
}

impl GroupMut<'_> {
    /// Adds −weight · log q of the first atom.
    pub fn own(mut self, weight: f64) -> Self {
        self.last().own = weight;
        self
    }

    /// Makes the first atom a member of every block: the inclusive form. To be said before any term.
    ///
    /// # Panics
    /// After a term.
    pub fn share_first(mut self) -> Self {
        let group = self.last();
        assert!(group.terms.is_empty(), "an atom is shared before the blocks are cut");
        group.shared = true;
        self
    }

    /// Adds weight · log-mean-exp of all atoms.
    pub fn log_mean_exp(self, weight: f64) -> Self {
        let size = self.inner();
        self.term(Term { weight, size, blocks: 1 })
    }

    /// Adds weight times (log-mean-exp of all atoms minus the mean of that of its two halves).
    ///
    /// # Panics
    /// If the atoms, without a shared one, cannot be halved.
    pub fn antithetic_difference(self, weight: f64) -> Self {
        let half = self.inner() / 2;
        assert!(half > 0 && 2 * half == self.inner(), "an even number of atoms, to be halved");
        self.log_mean_exp(weight).term(Term { weight: -weight, size: half, blocks: 2 })
    }

    /// Adds weight times (log-mean-exp of all atoms minus that of the first half).
    ///
    /// # Panics
    /// If the atoms, without a shared one, cannot be halved.
    pub fn naive_difference(self, weight: f64) -> Self {
        let half = self.inner() / 2;
        assert!(half > 0 && 2 * half == self.inner(), "an even number of atoms, to be halved");
        self.log_mean_exp(weight).term(Term { weight: -weight, size: half, blocks: 1 })
    }

    /// Adds a term.
    ///
    /// # Panics
    /// If the group has fewer atoms than its blocks, or a block is empty.
    pub fn term(mut self, term: Term) -> Self {
        let fits = term.size > 0 && term.blocks > 0 && term.size * term.blocks <= self.inner();
        assert!(fits, "{term:?} of a group of {} atoms", self.inner());
        self.plan.terms.push(term);
        self.last().terms.end += 1;
        self
    }

    /// Adds log-weights to log g of the atoms, one each: log p̃ − log r for inner samples that come
    /// from a law r instead of the proposal p̃, so that the mean over them stays unbiased for Z. None
    /// at all means that every one is 0.
    ///
    /// # Panics
    /// Unless there is one for each atom.
    pub fn log_weights(mut self, log_weights: &[f64]) -> Self {
        if log_weights.is_empty() {
            return self;
        }
        let atoms = self.last().atoms.clone();
        assert_eq!(atoms.len(), log_weights.len(), "a log-weight for each atom");
        self.plan.log_weights.resize(atoms.end, 0.0);
        self.plan.log_weights[atoms].copy_from_slice(log_weights);
        self
    }

    fn inner(&self) -> usize {
        let group = self.plan.groups.last().expect("it was just added");
        group.pairs() - usize::from(group.shared)
    }

    fn last(&mut self) -> &mut Group {
        self.plan.groups.last_mut().expect("it was just added")
    }
}
