//! Didyma's drawing: marks, axes, histograms and contours become SVG and PNG images. Nothing here knows of inference.
//!
//! # A tour
//! A chart of curves is one call:
//!
//! ```
//! use didyma_plot::{Curve, CurvePoint, Panel, Place, curves, png};
//!
//! let points = (1..=5).map(f64::from).map(|x| CurvePoint { x, y: 1.0 / x, error: 0.05 });
//! let measured = Curve { name: "measured".to_owned(), points: points.collect(), dashed: false };
//! let [title, x_label, y_label] = ["Error", "work", "error"].map(str::to_owned);
//! let panel = Panel { title, x_label, y_label, log_x: true, log_y: true, curves: vec![measured] };
//! let svg = curves("What an error costs", &[panel], Place::Alone);
//! assert!(svg.starts_with("<svg") && svg.contains("measured"));
//! assert!(png(&svg)?.starts_with(b"\x89PNG"));
//! # Ok::<(), didyma_plot::PngError>(())
//! ```
//!
//! Other figures are drawn mark by mark. A [`Frame`] places values between two [`Scale`]s, and a [`Canvas`] collects the
//! marks:
//!
//! ```
//! use didyma_plot::{Canvas, Frame, Histogram, Ink, Place, Scale};
//!
//! let bars = Histogram::new(&[0.1, 0.4, 0.5, 0.6], (0.0, 1.0), 4);
//! let (x, y) = (Scale::new(0.0, 1.0), Scale::new(0.0, bars.highest()));
//! let frame = Frame { corner: (40.0, 20.0), size: (200.0, 100.0), x, y };
//! let mut canvas = Canvas::new(Place::Alone, 260.0, 170.0);
//! frame.y_axis(&mut canvas, "density");
//! frame.x_axis(&mut canvas, "θ");
//! for (left, right, height) in bars.iter() {
//!     let corner = frame.place(left, height);
//!     let size = (frame.across(right) - corner.0, frame.bottom() - corner.1);
//!     canvas.rectangle(corner, size, Ink::Series(0), 0.6);
//! }
//! let svg = canvas.finish("Samples", "four samples between 0 and 1");
//! assert_eq!(svg.matches("<rect").count(), 5, "the paper and four bars");
//! ```
//!
//! # The modules, in reading order
//! `ink` has the colours, `canvas` the marks; `scale` and `axes` place values; `style` and `legend` tell series apart;
//! `histogram` counts samples, `density` smooths pairs of them and `contour` outlines the regions that hold most;
//! `curves` draws whole charts, and `png` turns an image into a bitmap by a font of its own.

#![deny(missing_docs)]
#![warn(unreachable_pub)]

mod axes;
mod canvas;
mod contour;
mod curves;
mod density;
mod histogram;
mod ink;
mod legend;
mod png;
#[cfg(test)]
mod sampled;
mod scale;
mod style;

pub use axes::Frame;
pub use canvas::{Anchor, Canvas, Label, Point, Stroke, escaped, shortened};
pub use curves::{Curve, CurvePoint, Panel, curves};
pub use density::Density;
pub use histogram::{Histogram, Range, quantile, view};
pub use ink::{Ink, Place};
pub use legend::Legend;
pub use png::{PngError, png};
pub use scale::{Scale, number, number_to};
pub use style::{Mark, Style};
