pub use llguidance as _;
pub use llama_cpp_sys_2 as _;
