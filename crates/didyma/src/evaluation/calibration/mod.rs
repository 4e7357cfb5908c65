//! Calibration: do the probabilities that posteriors state come true over simulations whose parameters are known?
