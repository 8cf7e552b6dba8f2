/// Generates the stubs of vx.v1 from the folder `proto`.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["me", "generate", "embed"].map(|name| format!("vx/v1/{name}.proto"));
    let descriptors = protox::compile(files, ["proto"])?;
    tonic_prost_build::configure().build_server(false).compile_fds(descriptors)?;
    Ok(())
}
