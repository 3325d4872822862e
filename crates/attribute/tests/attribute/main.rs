//! Attribution: cases from kernels seen in the field, and properties that hold it to a plain reference.

mod carried;
mod cases;
mod properties;
mod reference;
mod scene;
mod streams;
