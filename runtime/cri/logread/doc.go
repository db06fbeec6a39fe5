// Package logread reads the logs of containers, where a runtime writes them to files of
// this host: what kubectl logs shows.
//
// # What it decides
//
// Which lines are wanted (section 14): by stream, time, number and size; where the last
// lines begin, in files that can only be read forwards as well; and where a log goes on
// when its file was rotated, compressed or removed under the reader.
//
// # Usage
//
//	reader, err := logread.New(logread.Config{})
//	path, err := rt.LogPath(ctx, containerID) // runtime.LogReader
//	err = reader.Read(ctx, logread.Request{Path: path, Tail: &n, Follow: true, Running: running}, w)
//
// [Parse] alone reads a line, of the CRI's format or of Docker's.
//
// # Concurrency
//
// A [Reader] can be used from many goroutines. Read uses w, Running and Gap from the
// one that called it; a follow has another that listens to the file system, which has
// ended when Read returns. A writer that is slow holds up its own reading only.
//
// # Guarantees and limits
//
//   - All files of a log are one stream, the oldest line first: those that were rotated
//     to <log>.<YYYYMMDD-HHMMSS>, compressed or not, and the live one (F-36). No line is
//     lost and none comes twice, whatever rotation and compression do meanwhile. What
//     cannot be had, because it was removed, is damaged or was truncated, is told, at its
//     place (Request.Gap).
//   - Without Follow a reading is of one moment: the files are opened together, and what
//     is written later is not read. With it, files are held open only until they have
//     been read; a follower that is slower than MaxFiles rotations finds a gap. The
//     newest 100 files of a log are read.
//   - A follow leaves a file that was rotated when nobody has written to it for
//     Config.Settle; a runtime that is later than that loses the line.
//   - Memory is bounded, some 400 KiB, whatever files hold. A line of the CRI's format may
//     be of any length; one of Docker's beyond 128 KiB is skipped, as are lines of no known
//     format. A log that has no other lines is an error, ErrFormat.
//   - Tail looks at no more than it must: from the end of the files that are not compressed;
//     at a compressed one twice. For a line whose beginning is further from its last known
//     piece than 1 MiB, it begins in its middle.
//   - Pieces of lines of two streams that were written at the same time stand between each
//     other, as they do in the file.
//   - Where files cannot be renamed while they are open, as on Windows, a runtime cannot
//     rotate while somebody reads.
//
// # Differences from the kubelet
//
//   - It reads the live file only (la-14), loses lines at a rotation, and counts the pieces
//     of a long line as lines (la-10, la-7): Config.LiveOnly and PhysicalLines do as it does.
//   - Its first line decides the format of a log, and the log cannot be read if that is
//     damaged (la-6). Here each line is of the format that it looks like.
//   - It reads a line of any length into memory.
//   - It gives up if the file system cannot be listened to, or after six errors (la-12). Here
//     a log is looked at from time to time then.
//   - It notices neither that a file was truncated nor that the last file of a container
//     that has ended is missing.
//
// # Testing
//
// Random logs of many files against a model; a hundred rotations by logrotate under
// readers that are quick, slow, and too slow, in virtual time and in real time; files
// that lie; fuzzed lines and files; throughput as a benchmark.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package logread
