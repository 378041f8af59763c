//! The server with an allocator that counts. For each line on its standard input it prints how often it has allocated so far, and how
//! many bytes.

use std::{
    alloc::System,
    io::{self, BufRead, Write},
    process::ExitCode,
};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    std::thread::spawn(answer);
    tavernkeep::cli::main()
}

fn answer() -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        line?;
        let counts = ALLOCATOR.stats();
        let times = counts.allocations + counts.reallocations;
        // What an allocation grew by when it was reallocated is among its bytes already.
        writeln!(io::stdout(), "allocated {times} times, {} bytes", counts.bytes_allocated)?;
    }
    Ok(())
}
