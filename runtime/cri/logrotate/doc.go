// Package logrotate keeps the logs of containers from growing without end, where a
// runtime writes them to files of this host in the CRI's format.
//
// # What it decides
//
// When a log is full, and what becomes of it (section 5): it is renamed to
// <log>.<YYYYMMDD-HHMMSS>, the runtime goes on in a new file, rotated files beyond
// MaxFiles are removed, and all but the newest of them are compressed. The newest
// stays as it is until the next rotation, for readers that are at it (lg-7).
//
// # Usage
//
//	r, err := logrotate.New(logrotate.Config{Runtime: rt, MaxSize: 10 << 20, MaxFiles: 5})
//	go r.Run(ctx)
//
// [Rotator.Pass] is one look at all logs, for who has a loop of his own.
//
// # Concurrency
//
// Run is called once; Pass only without it. Run has a goroutine per worker, one
// that compresses, and one that listens to the file system.
//
// # Guarantees and limits
//
//   - How often a log is looked at follows from how fast it grows: what is written
//     beyond MaxSize is a few hundredths of it, also at 50 MB/s (F-35), as long
//     as the machine is not overloaded and the runtime reopens logs quickly. On Linux a log that nobody writes to costs
//     nothing until somebody does; elsewhere it is looked at each second.
//   - Compression comes behind rotation, never before it, and takes half of one CPU
//     at most.
//   - No rotated file takes the place of another, also if a log is full several
//     times in a second: then its name is of the next second that is free.
//   - A log that cannot be reopened gets its name back, and is tried again.
//   - The logs of containers that do not run are left alone (lg-3); whoever
//     collects garbage removes them (lg-8).
//
// # Differences from the kubelet
//
// It looks each 10 seconds, whatever is written in between, and compresses before
// it renames.
//
// # Testing
//
// Rotations on real files with a runtime in memory; the looks in virtual time; a
// writer of 50 MB/s as a benchmark.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package logrotate
