// Package logread reads container logs that a runtime writes to files on this
// host, as for kubectl logs.
//
// A [Reader] selects lines by stream, time, number and size, finds the start of
// the last lines also in compressed files, and follows a log while its files are
// rotated, compressed or removed.
//
// # Usage
//
//	reader, err := logread.New(logread.Config{})
//	path, err := rt.LogPath(ctx, containerID) // runtime.LogReader
//	err = reader.Read(ctx, logread.Request{Path: path, Tail: &n, Follow: true, Running: running}, w)
//
// [Parse] parses a single line in the CRI's or Docker's format.
//
// # Concurrency
//
// A [Reader] is safe for concurrent use. Read calls w, Running and Gap on the
// goroutine of its caller. A following Read has one more goroutine, which watches
// the file system and has returned when Read returns. A slow writer delays only
// its own Read.
//
// # Guarantees and limits
//
//   - All files of a log are one stream, oldest line first: the files that were
//     rotated to <log>.<YYYYMMDD-HHMMSS>, compressed or not, and the live file. No
//     line is lost or repeated by concurrent rotation and compression. Lines that
//     were removed, damaged or truncated are reported at their place
//     (Request.Gap).
//   - Without Follow, Read returns the log as of one moment: the files are opened
//     together, and later lines are not read. With Follow, files are open only
//     until they have been read; a reader that is slower than MaxFiles rotations
//     gets a gap. The newest 100 files of a log are read.
//   - With Follow, a rotated file is read until it was not written for
//     Config.Settle; lines written later are lost.
//   - Memory is limited to about 400 KiB. A line in the CRI's format may have any
//     length; one in Docker's format above 128 KiB is skipped, as are lines in
//     neither format. A log with no valid lines is an error, ErrFormat.
//   - Tail reads uncompressed files from the end and only as far as necessary, and
//     compressed files twice. If the beginning of a line is more than 1 MiB before
//     the last part of it that was found, the output starts in the middle of the
//     line.
//   - Parts of lines that were written to both streams concurrently are
//     interleaved, as in the file.
//   - Where open files cannot be renamed, as on Windows, a runtime cannot rotate a
//     log that is being read.
//
// # Differences from the kubelet
//
//   - The kubelet reads only the live file, loses lines at a rotation, and counts
//     the parts of a long line as lines; Config.LiveOnly and PhysicalLines select
//     this behavior.
//   - In the kubelet the first line determines the format of a log, and a log with
//     a damaged first line cannot be read. Here the format is detected for each
//     line.
//   - The kubelet reads lines of any length into memory.
//   - The kubelet fails if the file system cannot be watched, and after six errors.
//     Here the log is polled.
//   - The kubelet detects neither a truncated file nor that the last file of a
//     terminated container is missing.
//
// # Testing
//
// Random logs of many files are compared with a model. A hundred rotations by
// logrotate run under readers that are fast, slow and too slow, in virtual time and
// in real time. There are tests with malformed files, fuzz tests of lines and files,
// and a benchmark of the throughput.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package logread
