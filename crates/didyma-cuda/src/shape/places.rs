//! Where each parameter lies in the images.

use super::{LayerPlaces, Map, Shape};
use didyma::FlowConfig;

impl Shape {
    /// For each parameter its places in the images: forward (or, below −1, context), and backward; −1 for none.
    pub fn places(&self) -> Vec<[i32; 2]> {
        let mut places = vec![[-1; 2]; self.params];
        for (l, layer) in self.layers.iter().enumerate() {
            self.layer_places(l, layer, &mut places);
        }
        places
    }

    fn layer_places(&self, l: usize, layer: &LayerPlaces, places: &mut [[i32; 2]]) {
        let FlowConfig { units, blocks, x_dim, .. } = self.config;
        let (forward, backward) = (l * self.forward.end, l * self.backward.end);
        let context = |c: usize, column: usize| {
            -2 - (l * self.context_floats() + c * self.context_width() + column) as i32
        };
        let initial_back = backward + self.backward_matrices[2 * blocks + 1];
        let inputs = layer.known + x_dim;
        for u in 0..units {
            for i in 0..inputs {
                places[layer.initial.weight + u * inputs + i] = match i.checked_sub(layer.known) {
                    Some(c) => [context(c, u), -1],
                    None => [
                        (forward + i * self.units_padded + u) as i32,
                        (initial_back + u * self.known_padded + i) as i32,
                    ],
                };
            }
            places[layer.initial.bias + u][0] = context(x_dim, u);
            for (b, map) in layer.context.iter().enumerate() {
                let column = (1 + b) * self.units_padded + u;
                for c in 0..x_dim {
                    places[map.weight + u * x_dim + c][0] = context(c, column);
                }
                places[map.bias + u][0] = context(x_dim, column);
            }
        }
        let mut dense = |map: &Map, outputs: usize, padded: usize, ahead: usize, back: usize| {
            let (ahead, back) = (forward + ahead, backward + back);
            for o in 0..outputs {
                for i in 0..units {
                    places[map.weight + o * units + i] = [
                        (ahead + i * padded + o) as i32,
                        (back + o * self.units_padded + i) as i32,
                    ];
                }
                places[map.bias + o][0] = (ahead + units * padded + o) as i32;
            }
        };
        for b in 0..blocks {
            let (ahead, back) = (&self.forward_matrices, &self.backward_matrices);
            // Back, the last block comes first, and its second map before its first.
            let m = 2 * (blocks - 1 - b);
            dense(&layer.first[b], units, self.units_padded, ahead[2 * b], back[m + 2]);
            dense(&layer.second[b], units, self.units_padded, ahead[2 * b + 1], back[m + 1]);
        }
        let logits = (self.config.theta_dim - layer.known) * self.spline_logits;
        let ahead = self.forward_matrices[2 * blocks];
        dense(&layer.last, logits, self.logits_padded, ahead, self.backward_matrices[0]);
    }
}
