//! The parameters of a problem file and their priors.

use super::reader::{Fields, Node};
use crate::error::Result;
use crate::names::{self, Use};
use crate::problem::prior::{Marginal, Prior};

/// The prior, labels, and true values if there are any.
pub(super) type Parameters = (Prior, Vec<String>, Option<Vec<f64>>);

pub(super) fn parameters(table: &Fields) -> Result<Parameters> {
    let (mut laws, mut labels, mut truth) = (Vec::new(), Vec::new(), Vec::new());
    for (name, node) in table.entries() {
        if let Some(fault) = names::fault(name, Use::Column) {
            return Err(node.error(fault));
        }
        if name.contains(['{', '}']) {
            return Err(node.error("is in braces where a command has it: leave braces out"));
        }
        let law = node.table()?;
        laws.push((name, marginal(&law, &node)?));
        labels.push(law.get("label").map_or(Ok(name.to_owned()), |label| label.name(Use::Text))?);
        if let Some(value) = law.get("truth") {
            let number = value.number()?;
            if !laws[laws.len() - 1].1.contains(number) {
                return Err(value.error(format!("is {number}, outside of the prior")));
            }
            truth.push(number);
        }
    }
    if laws.is_empty() {
        return Err(table
            .error("parameters", "is empty: name at least one, as rate = { uniform = [0, 1] }"));
    }
    if !truth.is_empty() && truth.len() < laws.len() {
        return Err(table.error("parameters", "have a truth for some only: give all or none"));
    }
    let prior = Prior::new(laws).map_err(|error| table.error("parameters", error.to_string()))?;
    Ok((prior, labels, Some(truth).filter(|truth| !truth.is_empty())))
}

/// Laws that flows cannot learn.
const DISCRETE: [&str; 9] = [
    "bernoulli",
    "binomial",
    "categorical",
    "choice",
    "discrete",
    "geometric",
    "integer",
    "poisson",
    "values",
];

fn marginal(law: &Fields, node: &Node) -> Result<Marginal> {
    if let Some(name) = law.names().find(|name| DISCRETE.contains(name)) {
        let problem = "is a discrete law, and q(θ | x) is a density, which steps would have no part in: give the \
                       parameter a uniform prior and round it in the simulator, or infer once for each value";
        return Err(law.get(name).map_or(node.error(problem), |node| node.error(problem)));
    }
    law.only(&["uniform", "normal", "log_normal", "low", "high", "label", "truth"])?;
    let kinds = ["uniform", "normal", "log_normal"];
    let mut given = kinds.iter().filter_map(|kind| law.get(kind).map(|node| (*kind, node)));
    let Some((kind, value)) = given.next() else {
        let remedy = "has no prior: give uniform = [low, high], normal = [mean, sd] or log_normal = [mean, sd]";
        return Err(node.error(remedy));
    };
    if let Some((other, node)) = given.next() {
        return Err(
            node.error(format!("is a second prior beside {kind}: leave {other} or {kind} out"))
        );
    }
    let bound = |name: &str| law.get(name).map(|node| Ok((node.number()?, node))).transpose();
    let (low, high) = (bound("low")?, bound("high")?);
    if let (Some((low, _)), Some((high, node))) = (&low, &high)
        && low >= high
    {
        return Err(node.error(format!("is {high}, but low is {low}: give a low below high")));
    }
    let [a, b] = match kind {
        "uniform" => value.pair("the lower and the upper bound")?,
        _ => value.pair("the mean and the standard deviation")?,
    };
    let marginal = match (kind, low, high) {
        ("uniform", None, None) => Marginal::Uniform { low: a, high: b },
        ("uniform", Some((_, node)), _) | ("uniform", None, Some((_, node))) => {
            return Err(
                node.error("is of no use beside uniform, which has its bounds: leave it out")
            );
        }
        ("normal", None, None) => Marginal::Normal { mean: a, sd: b },
        (_, None, None) => Marginal::LogNormal { mean: a, sd: b },
        (_, low, high) => {
            let log = kind == "log_normal";
            let (low, high) = (low.map(|(bound, _)| bound), high.map(|(bound, _)| bound));
            Marginal::Truncated { mean: a, sd: b, log, low, high }
        }
    };
    marginal.check().map_err(|error| value.error(format!("cannot be used: {error}")))?;
    Ok(marginal)
}
