// Package record records what crosses the borders of an agent: desired pods, calls and events of the
// CRI, probes, operations on volumes and cgroups, statuses, random draws, and the state that an earlier agent has
// left on disk.
//
// # Behavior
//
// It decides what is written, and in what form, so that a defect of a node can be examined later.
// A [Recorder] returns wrappers of the sources, services, handlers and sinks of an agent. They
// notify the Recorder of each call, with its result and its duration, and pass it on unchanged.
// [Recorder.Run] writes the notifications to files, as [Frame] values. [Read] and [ReadFiles]
// return them.
//
// Files are rotated by size and age. Each file is readable without the others: it begins with a
// [Header] and with the complete sets of all sources. docs/recording.md describes the format.
//
// # Usage
//
//	recorder, err := record.New(record.Config{Dir: "/var/log/recordings", Node: "edge-1"})
//	…
//	recorder.RuntimeState("/var/lib/kubelet") // checkpoints of an earlier agent
//	rt, err := cri.New(cri.Config{
//		Runtime: recorder.RuntimeService(client.Runtime), Images: recorder.ImageService(client.Images), …
//	})
//	volumes.Hooks.Operated = recorder.Volumes
//	recorder.Agent(&agentConfig) // sources, sink, probes, cgroups
//	…
//	go recorder.Run(ctx) // stopped after the agent
//
// The reference agent does this with --record-dir=DIR, and examples/recording prints the files:
//
//	go run ./examples/recording DIR
//
// # Concurrency
//
// All methods are safe for concurrent use. A wrapper encodes a message of the CRI in the goroutine of the
// caller, and never waits for the disk: if the queue of a Recorder is full, notifications are dropped and
// counted ([Dropped]).
//
// # Guarantees and limits
//
//   - A file that ends at any byte is readable up to its last complete frame; the error is an
//     [ErrTruncated]. A changed file is readable up to the changed frame; the error is an
//     [ErrCorrupt] with its offset. Memory is bounded for any input.
//   - A killed process loses only the notifications that were queued. Files are synced when they
//     are completed: a crash of the machine may lose more.
//   - Secrets are not written. Environments, commands, outputs of programs, credentials, values of most
//     annotations and similar fields are masked by a keyed hash, whose key is in memory only. A test
//     fails if a message or a pod has a text field that has not been reviewed. Texts of errors may
//     contain a masked value: there it is replaced if it has at least 6 bytes and is one of the last
//     4096. Names, images, labels and paths are written.
//   - A time of 2.5 s or more in which the process did not run is recorded ([Pause]).
//   - ConfigMaps and Secrets, the calls of CSI and DRA drivers, the contents of volumes and logs, and
//     the content of streams are not recorded.
//   - A call that is in progress at the end has a frame if it has taken 10 seconds.
//   - Calls in a recording are in the order of their ends. Lists of the CRI are sorted by ID.
//
// # Differences from the kubelet
//
// The kubelet has no counterpart.
//
// # Testing
//
// A small file is cut at each byte, and each of its bits is flipped; FuzzRead reads any input. A
// real agent on a CRI runtime in memory is recorded in virtual time, with markers in all secrets.
//
// # Stability
//
// Experimental: the API and the format may change in any release. The first line of a file has the
// version of its format; Read rejects others.
package record
