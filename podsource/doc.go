// Package podsource obtains the desired pods of a node.
//
// A [PodSource] delivers the complete set of its pods each time; [Merge] validates the sets,
// compares them with the previous ones and calls a [Sink] with the pods to add, update and remove.
// Sources are [File] (a manifest or a directory of manifests), [URL] (a web server), [Memory] (the
// program itself) and [Func]; the source of the API server is in kube/client. A [Checkpoint] wraps a
// remote source and delivers its last set if the source is unavailable when the agent starts.
//
// Package podsource/manifest decodes, defaults and validates manifests.
//
// # Usage
//
//	files, err := podsource.NewFile(podsource.FileConfig{
//		Path: "/etc/kubernetes/manifests", NodeName: "node-1"})
//	merge, err := podsource.NewMerge(podsource.MergeConfig{
//		Sources: map[string]podsource.PodSource{podsource.FileSource: files},
//		Sink:    loop, // podworker.Loop, or your own
//	})
//	err = merge.Run(ctx)
//
// Without a loop of ours, [File.Read] looks once, and [File.Problems] says what
// it could not use.
//
// # Concurrency
//
// Merge.Run runs each source on a goroutine of its own and calls the sink from
// its own, one call at a time (src-13); a sink that blocks makes the sources
// wait, and nothing is dropped (src-11). Memory's methods and File.Problems may
// be called from anywhere.
//
// # Guarantees and limits
//
// The same set again changes nothing (inv-13). The calls add up: applied in
// order, they give what the sources want. The sink's pods are its own copies.
// A source that fails is started again, after 1 s to 20 s, and its pods stay.
// A pod that cannot be used is reported by name and harms no other.
//
// A manifest is one regular file of at most 1.5 MiB, the size of the largest object
// that the API server stores; manifest.Decode has the other bounds. A list from a web server
// has at most 10 MiB in JSON, or 1.5 MiB in YAML, and 10,000 pods. The last good version is
// in force until the file is good again or gone; it is kept in memory only, so
// that a file which is bad when the agent starts has no pod. A file that is
// being written is left until it has rested. Changes behind symbolic links and
// on network file systems are seen at the next period.
//
// # Differences from the kubelet
//
//   - A manifest that turns bad keeps its pod (lq-23); problems can be listed
//     and observed rather than only logged (lq-24).
//   - An empty directory is an empty set (lq-26). Of two files with one pod, the
//     first by name wins, and the other is reported.
//   - A pod that is being deleted comes as an update. One whose status alone
//     changed comes to a sink that is a [Reconciler] only, and then also with an
//     update (src-7). An update carries the whole object, resourceVersion and
//     owners included (src-9).
//   - Of a list that a web server has, a pod that cannot be used keeps its last
//     good version and harms no other. Requests are conditional, and an answer
//     that is not the first is waited for a whole period, the first is not.
//   - A pod that comes back renamed under the same UID is removed and added.
//   - One UID in two sources belongs to the first; the other gets it when the
//     first lets go.
//
// # Testing
//
// Merge and Memory are tested in synctest bubbles, File on real directories. FuzzURL
// has a web server answer arbitrary text.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package podsource
