//! Figures as bitmaps, by our own font: no library of the system is needed.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};
use std::sync::{Arc, OnceLock};

/// DejaVu Sans in its regular and bold cut, with the letters that figures use.
const FONTS: [&[u8]; 2] =
    [include_bytes!("../assets/DejaVuSans.ttf"), include_bytes!("../assets/DejaVuSans-Bold.ttf")];
/// Pixels of the bitmap for one of the image: sharp on paper and on fine screens.
const SCALE: f32 = 2.0;

/// An image that cannot become a bitmap.
#[derive(Debug, thiserror::Error)]
#[error("the image cannot be drawn as a bitmap: {0}")]
pub struct PngError(String);

/// The bitmap of a figure that stands alone, as a PNG file.
pub fn png(svg: &str) -> Result<Vec<u8>, PngError> {
    static KNOWN: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let fonts = KNOWN.get_or_init(|| {
        let mut fonts = fontdb::Database::new();
        FONTS.iter().for_each(|font| fonts.load_font_data(font.to_vec()));
        fonts.set_sans_serif_family("DejaVu Sans");
        Arc::new(fonts)
    });
    let options = Options { fontdb: Arc::clone(fonts), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| PngError(error.to_string()))?;
    let size = tree.size().to_int_size().scale_by(SCALE);
    let pixels = size.and_then(|size| Pixmap::new(size.width(), size.height()));
    let mut pixels = pixels.ok_or_else(|| PngError("its size has no bitmap".to_owned()))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| PngError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anchor, Canvas, Ink, Label, Place};

    #[test]
    fn letters_leave_ink() {
        let dark = |text: &str| {
            let mut canvas = Canvas::new(Place::Alone, 60.0, 30.0);
            canvas.text((5.0, 20.0), text, Label::new(16.0, Ink::Text, Anchor::Start));
            let bitmap = Pixmap::decode_png(&png(&canvas.finish("", "")).unwrap()).unwrap();
            assert_eq!((bitmap.width(), bitmap.height()), (120, 60));
            bitmap.pixels().iter().filter(|pixel| pixel.red() < 128).count()
        };
        assert_eq!(dark(""), 0);
        // Every letter of figures, some of which small fonts lack.
        for letter in ["θ", "Δψ", "‖ρ‖", "²", "±", "−", "₁", "≥", "…", "é", "µ"]
        {
            assert!(dark(letter) > 4, "{letter}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "no image", "<svg"] {
            let told = png(text).unwrap_err().to_string();
            assert!(told.starts_with("the image cannot be drawn as a bitmap: "), "{told}");
        }
    }
}
