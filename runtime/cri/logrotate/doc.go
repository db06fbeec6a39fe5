// Package logrotate rotates container logs that a runtime writes to files on this
// host in the CRI's format.
//
// A log that has reached MaxSize is renamed to <log>.<YYYYMMDD-HHMMSS>, and the
// runtime reopens the log. Rotated files beyond MaxFiles are removed, and all but
// the newest are compressed. The newest is compressed at the next rotation,
// because readers may have it open. Rotated files that an earlier agent left are
// removed and compressed at the start, also if nothing is written to the log.
//
// # Usage
//
//	r, err := logrotate.New(logrotate.Config{Runtime: rt, MaxSize: 10 << 20, MaxFiles: 5})
//	go r.Run(ctx)
//
// [Rotator.Pass] checks all logs once, for callers with a loop of their own.
//
// # Concurrency
//
// Run must be called only once, and Pass must not be called concurrently with it.
// Run starts a goroutine per worker, one that compresses, and one that watches the
// file system.
//
// # Guarantees and limits
//
//   - The interval at which the size of a log is checked depends on its growth
//     rate, so that a log exceeds MaxSize by a few percent, also at 50 MB/s, if
//     the machine is not overloaded and the runtime reopens logs quickly. On Linux
//     only logs that are written are polled; elsewhere each log is checked every
//     second.
//   - Compression does not delay rotation and uses at most half of one CPU.
//   - A rotated file never replaces another, also if a log is rotated several times
//     in a second: its name has the next unused second.
//   - If a log cannot be reopened, the rename is undone and the rotation retried.
//   - Logs of containers that do not run are not changed; garbage collection
//     removes them.
//
// # Differences from the kubelet
//
// The kubelet checks logs every 10 seconds, independent of their growth, and
// compresses before it renames.
//
// # Testing
//
// Tests rotate real files with an in-memory runtime; the intervals are tested in
// virtual time, and a benchmark writes 50 MB/s.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package logrotate
