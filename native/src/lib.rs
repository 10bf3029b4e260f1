//! The one static library behind agentgraph. It re-exports the C symbols of
//! llguidance and llama.cpp and adds small wrappers (`ag_*`) wherever a call
//! would pass a struct of theirs by value, so that the Go side holds opaque
//! pointers and plain numbers only. The headers in `include/` are ours.

pub use llama_cpp_sys_2 as _;
pub use llguidance as _;

mod chat;
mod check;
mod llama;
mod llg;
mod util;
