//! The pure core, driven through whole lives without any I/O.

mod golden;
mod head;
mod life;
mod model;
mod thread;
