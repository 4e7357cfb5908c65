//! Saving.
