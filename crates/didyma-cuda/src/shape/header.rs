//! What is written before the kernels: the constants of a flow's shape.

use super::*;
use didyma::training::AdamConfig;
use std::fmt::Write;

impl Shape {
    /// The constants that precede the kernels.
    pub fn header(&self, tiling: Tiling) -> String {
        let spline = self.config.spline();
        let interval = 2.0 * spline.bound;
        let smallest = didyma::kernel::MIN_BIN;
        let mut text = String::new();
        for (name, value) in [
            ("DIM", self.config.theta_dim),
            ("CONTEXT", self.config.x_dim),
            ("LAYERS", self.config.layers),
            ("BLOCKS", self.config.blocks),
            ("UNITS", self.config.units),
            ("BINS", self.config.bins),
            ("PARAMS", self.params),
            ("KNOWN", self.known),
            ("SPLINES", self.splines),
            ("SPLINE_LOGITS", self.spline_logits),
            ("LOGITS", self.logits),
            ("UNITS_PADDED", self.units_padded),
            ("LOGITS_PADDED", self.logits_padded),
            ("KNOWN_PADDED", self.known_padded),
            ("SLAB_UNITS", slab_rows(self.units_padded)),
            ("SLAB_LOGITS", slab_rows(self.logits_padded)),
            ("RING_SLOT", self.ring()),
            ("FORWARD_STAGES", self.forward.offsets.len()),
            ("FORWARD_FLOATS", self.forward.end),
            ("FORWARD_FACTORS", self.forward_factors),
            ("FORWARD_LINEAR", self.forward_linear),
            ("BACKWARD_STAGES", self.backward.offsets.len()),
            ("BACKWARD_FLOATS", self.backward.end),
            ("CONTEXT_FLOATS", self.context_floats()),
            ("GRADIENTS", GRADIENTS),
            ("GRADIENT_STRIDE", self.gradient_stride()),
            ("NORMS", self.norms()),
            ("AHEAD", AHEAD),
            ("FORWARD_HELPERS", FORWARD_HELPERS),
            ("BACKWARD_HELPERS", BACKWARD_HELPERS),
            ("ROWS", tiling.rows),
            ("ROWS_PER_THREAD", tiling.rows / ROW_GROUPS),
            ("THREADS", THREADS),
            ("PEAK_LENGTH", PEAK_LENGTH),
        ] {
            let _ = writeln!(text, "#define {name} {value}");
        }
        for (name, value) in [
            ("BOUND", spline.bound),
            ("LOGIT_SCALE", spline.logit_scale),
            ("FLOOR", interval * smallest),
            ("SLOPE", interval * (1.0 - smallest * self.config.bins as f64)),
            ("MIN_DERIVATIVE", didyma::kernel::MIN_DERIVATIVE),
            ("NORM_FLOOR", AdamConfig::NORM_FLOOR),
            ("LEAST_FIRST", didyma::kernel::LEAST_M),
            ("LEAST_SECOND", didyma::kernel::LEAST_V),
        ] {
            let _ = writeln!(text, "#define {name} {:e}f", value as f32);
        }
        self.write_tables(&mut text);
        text
    }

    fn write_tables(&self, text: &mut String) {
        let mut table = |name: &str, values: &[String]| {
            let (count, values) = (values.len(), values.join(", "));
            let _ = writeln!(text, "__constant__ int {name}[{count}] = {{{values}}};");
        };
        for (name, stages) in [("FORWARD", &self.forward), ("BACKWARD", &self.backward)] {
            let ends = stages.offsets.iter().chain([&stages.end]).map(ToString::to_string);
            table(&format!("{name}_OFFSET"), &ends.collect::<Vec<_>>());
        }
        let matrices = self.backward.matrix.iter().map(ToString::to_string);
        table("BACKWARD_MATRIX", &matrices.collect::<Vec<_>>());
        let blocks = self.config.blocks.max(1);
        let _ = writeln!(
            text,
            "struct Places {{ int initial, initial_bias, last, last_bias, linear_bias, lower, upper, \
             diagonal, context[{blocks}], context_bias[{blocks}], first[{blocks}], first_bias[{blocks}], \
             second[{blocks}], second_bias[{blocks}]; }};"
        );
        let layers: Vec<String> = self.layers.iter().map(LayerPlaces::initialiser).collect();
        let (count, layers) = (layers.len(), layers.join(",\n"));
        let _ = writeln!(text, "__constant__ Places PLACES[{count}] = {{{layers}}};");
    }
}

impl LayerPlaces {
    fn initialiser(&self) -> String {
        let mut numbers: Vec<usize> =
            [self.initial, self.last].iter().flat_map(|map| [map.weight, map.bias]).collect();
        numbers.extend(self.linear);
        let mut text: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        for maps in [&self.context, &self.first, &self.second] {
            for part in [|map: &Map| map.weight, |map: &Map| map.bias] {
                let values: Vec<String> = maps.iter().map(|map| part(map).to_string()).collect();
                text.push(format!("{{{}}}", values.join(", ")));
            }
        }
        format!("{{{}}}", text.join(", "))
    }
}
