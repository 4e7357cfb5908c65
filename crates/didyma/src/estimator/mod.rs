//! What a training step computes: groups of atoms that share an observation, and how they reduce.
//!
//! For one observation x and a group of parameters ("atoms") θ_0, θ_1, … let
//! u_j = log q(θ_j | x) − log p(θ_j). Every loss of the project is a sum over groups
//!
//! $$ \sum_{\text{groups}} \Bigl[ -\,\text{own} \cdot \log q(\theta_0 \mid x)
//!    + \text{weight} \cdot \operatorname{log-mean-exp}_j u_j \Bigr] . $$
//!
//! Maximum likelihood is own = 1, weight = 0; the nested estimator of the normalising constant is a
//! group of inner samples with weight 1. A [`Plan`] says which; [`reduce()`] gives value and derivative.
//! Neither knows the flow.

mod plan;
mod reduce;

pub use plan::{Group, Plan};
pub use reduce::reduce;
