//! Builds our kernels against the headers of the llama.cpp that is linked.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let sources = llama_cpp();
    let ggml = sources.join("ggml");
    let mut b = cc::Build::new();
    b.cpp(true)
        .std("c++17")
        .files(["kernels/attention.cpp", "kernels/few_rows.cpp"])
        .include(sources.join("include"))
        .include(ggml.join("include"))
        .include(ggml.join("src"))
        .include(ggml.join("src/ggml-cpu"))
        // Warnings of llama.cpp's headers are not ours to mend.
        .warnings(false);
    // For this CPU only where the rest is: flags are parted by 0x1f.
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let here = flags.contains("target-cpu=native");
    if here && std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") {
        b.flag_if_supported("-march=native");
    }
    b.compile("agentgraph_kernels");
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:rerun-if-changed=compat");
}

/// The source folder of llama.cpp inside the crate that builds it.
fn llama_cpp() -> PathBuf {
    let target = std::env::var("TARGET").expect("TARGET is set for build scripts");
    let out = Command::new(std::env::var("CARGO").expect("CARGO is set for build scripts"))
        // Of other platforms nothing need be there.
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--offline",
            "--filter-platform",
            &target,
        ])
        .output()
        .expect("cargo metadata runs");
    assert!(
        out.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    let all: serde_json::Value =
        serde_json::from_slice(&out.stdout).expect("cargo metadata prints JSON");
    let manifest = all["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|p| p["name"] == "llama-cpp-sys-2")
        .and_then(|p| p["manifest_path"].as_str())
        .expect("llama-cpp-sys-2 is a dependency");
    PathBuf::from(manifest).with_file_name("llama.cpp")
}
