//! llg
