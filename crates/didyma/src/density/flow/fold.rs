//! Another scaling of x with the same function of x: the change goes into the weights that read it.

use super::SplineFlow;
use super::layout::Dense;

impl SplineFlow {
    /// Changes the parameters so that they read x' where they read x = offset + slope · x' before, number by number.
    ///
    /// # Panics
    /// Unless there is one offset and slope for each number of x.
    pub fn fold_x(&self, params: &mut [f32], offset: &[f64], slope: &[f64]) {
        let dims = (offset.len(), slope.len());
        assert_eq!(dims, (self.config.x_dim, self.config.x_dim), "one for each number of x");
        for layer in &self.layout.layers {
            fold(&layer.initial, layer.initial.inputs - offset.len(), params, offset, slope);
            for block in &layer.blocks {
                fold(&block.context, 0, params, offset, slope);
            }
        }
    }
}

/// Makes a linear layer read new features of which the old ones are `offset` + `slope` · new. `first` is the first column
/// that reads x.
pub(crate) fn fold(dense: &Dense, first: usize, params: &mut [f32], offset: &[f64], slope: &[f64]) {
    let (weight, bias) = dense.split(params);
    for (row, bias) in weight.chunks_exact_mut(dense.inputs).zip(bias) {
        let mut sum = f64::from(*bias);
        for (w, (offset, slope)) in row[first..].iter_mut().zip(offset.iter().zip(slope)) {
            sum += f64::from(*w) * offset;
            *w = (f64::from(*w) * slope) as f32;
        }
        *bias = sum as f32;
    }
}

#[cfg(test)]
mod tests {
    use crate::rng::{Purpose, Streams};
    use crate::{FlowConfig, Rows, SplineFlow};

    #[test]
    fn the_folded_flow_is_the_same_function() {
        let flow = SplineFlow::new(FlowConfig { layers: 3, ..FlowConfig::new(3, 2) }).unwrap();
        let mut rng = Streams::new(1).stream(Purpose::Weights, 0, 0);
        let params: Vec<f32> = flow.initial_params(&mut rng);
        let mut folded = params.clone();
        let (offset, slope) = ([0.3, -2.0], [0.1, 3.0]);
        flow.fold_x(&mut folded, &offset, &slope);
        let theta = Rows::new("theta", &[0.3, -1.0, 0.8], 3).unwrap();
        let new = [1.5f32, -0.4];
        let old: Vec<f32> = (0..2).map(|i| offset[i] as f32 + slope[i] as f32 * new[i]).collect();
        let log_q = |params: &[f32], x: &[f32]| {
            flow.log_density(params, theta, Rows::new("x", x, 2).unwrap()).unwrap()[0]
        };
        let (before, after) = (log_q(&params, &old), log_q(&folded, &new));
        // Ten roundings of numbers below 10.
        assert!((before - after).abs() < 1e-5, "{before} {after}");
        assert!((log_q(&params, &new) - after).abs() > 1e-3, "folding made a difference");
    }
}
