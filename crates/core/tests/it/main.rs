//! The pure core, driven through whole lives without any I/O.




mod model;
mod thread;
