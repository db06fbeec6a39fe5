// Package procmem returns memory that a process no longer uses to the system: that of an agent
// after many pods have started, and that of the code that only its start executes.
//
// # Behavior
//
// [Release] does two things:
//
//   - It collects garbage and returns the free part of the Go heap to the system. The Go
//     runtime by itself does so slowly, and keeps a tenth.
//   - On Linux it unmaps the read-only pages of the program: its code and constants, which are
//     most of the resident memory of an idle agent. The pages stay in the page cache of the
//     system, from which those that are used again are mapped at the next access, 16 at a time.
//     The kernel can reclaim the others sooner than if they were mapped.
//
// [Run] has garbage collected more often ([Config].GCPercent), and calls Release half a minute after
// the start, and then with pauses that double up to ten minutes.
//
// # Usage
//
//	go procmem.Run(ctx, procmem.Config{Logger: logger}) // before pods start
//
// It is for the main function of a program, as it affects the whole process.
//
// # Concurrency
//
// Both functions are safe for concurrent use. A collection of garbage does not stop the process,
// and unmapped pages are mapped again by the accesses of any goroutine.
//
// # Guarantees and limits
//
//   - Data is never lost: only mappings of the program without write permission are considered,
//     and those with a page that differs from the file are skipped. These are relocated sections,
//     and code in which a debugger has set a breakpoint. Libraries are left alone, because one
//     that is unloaded meanwhile could be replaced by data.
//   - A call takes milliseconds of CPU time. Accesses after it cause minor page faults: about a
//     thousand for the complete node, once per call.
//   - If memory is short, the kernel may evict the unmapped pages from its cache, as those of any
//     program that is not executed; then they are read from disk again.
//   - At most 8 MiB of /proc/self/smaps are read; further mappings are left alone.
//   - Elsewhere than on Linux only the heap is released.
//
// # Differences from the kubelet
//
// The kubelet leaves both to the Go runtime and the kernel.
//
// # Testing
//
// The choice of mappings is a function of the text of smaps, with a table test and a fuzz target.
// A test on Linux releases the pages of its own program. Run is tested in virtual time.
//
// # Stability
//
// Experimental: the API may change in any release.
package procmem
