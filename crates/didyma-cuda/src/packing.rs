//! A plan as the kernels read it: a header, groups, terms, log-weights and atoms, in one piece of memory.

use didyma::estimator::Plan;
use didyma::kernel::AdamStep;

const HEADER: usize = 32 + 80;
const GROUP: usize = 40;
const TERM: usize = 16;

/// Where the parts of a plan lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packing {
    terms_at: usize,
    log_weights_at: usize,
    atoms_at: usize,
    has_log_weights: bool,
    pub bytes: usize,
}

impl Packing {
    pub fn of(plan: &Plan) -> Self {
        let groups = plan.groups();
        let terms: usize = groups.iter().map(|group| group.terms.len()).sum();
        let has_log_weights = groups.iter().any(|group| !plan.log_weights(group).is_empty());
        let terms_at = HEADER + GROUP * groups.len();
        let log_weights_at = terms_at + TERM * terms;
        let atoms_at = log_weights_at + if has_log_weights { 8 * plan.pairs() } else { 0 };
        let bytes = (atoms_at + 4 * plan.pairs()).next_multiple_of(16);
        Self { terms_at, log_weights_at, atoms_at, has_log_weights, bytes }
    }

    /// Writes the plan, and Adam's numbers for it with the norm that gradients are cut down to.
    pub fn write(&self, plan: &Plan, adam: &AdamStep, clip: f64, to: &mut [u8]) {
        let mut out = Writer { to, at: 0 };
        let flags = u32::from(self.has_log_weights);
        let places = [self.terms_at, self.log_weights_at, self.atoms_at];
        out.numbers([plan.pairs(), plan.groups().len()].into_iter().chain(places));
        out.numbers([flags as usize, 0, 0]);
        let AdamStep { coupled_decay, shrink, beta1, beta2, rate, v_scale, epsilon, .. } = *adam;
        for number in [clip, coupled_decay, shrink, beta1[0], beta1[1], beta2[0], beta2[1]] {
            out.double(number);
        }
        [rate, v_scale, epsilon].into_iter().for_each(|number| out.double(number));
        let mut first_term = 0;
        for group in plan.groups() {
            let (context, shared) = (group.context as usize, usize::from(group.shared));
            let terms = group.terms.len();
            out.numbers([
                context,
                group.atoms.start,
                group.pairs(),
                shared,
                first_term,
                terms,
                0,
                0,
            ]);
            out.double(group.own);
            first_term += terms;
        }
        for term in plan.groups().iter().flat_map(|group| plan.terms(group)) {
            out.double(term.weight);
            out.numbers([term.size, term.blocks]);
        }
        for group in plan.groups().iter().filter(|_| self.has_log_weights) {
            let given = plan.log_weights(group);
            (0..group.pairs()).for_each(|i| out.double(given.get(i).copied().unwrap_or(0.0)));
        }
        for atom in plan.groups().iter().flat_map(|group| plan.atoms(group)) {
            out.bytes(&atom.to_ne_bytes());
        }
    }
}

struct Writer<'a> {
    to: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.to[self.at..][..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn double(&mut self, number: f64) {
        self.bytes(&number.to_ne_bytes());
    }

    /// Counts and places, all far below 2³².
    fn numbers(&mut self, numbers: impl IntoIterator<Item = usize>) {
        for number in numbers {
            self.bytes(&(number as u32).to_ne_bytes());
        }
    }
}
