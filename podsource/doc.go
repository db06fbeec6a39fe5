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
// [File.Read] reads the manifests once, for programs with a loop of their own, and [File.Problems]
// returns those that cannot be used.
//
// # Concurrency
//
// Merge.Run runs each source on a goroutine of its own and calls the sink from its own goroutine, one
// call at a time. A sink that blocks also blocks the sources; no set is dropped. The methods of Memory,
// File.Problems and URL.Problems are safe for concurrent use.
//
// # Guarantees and limits
//
// An unchanged set causes no calls of the sink. The calls, applied in order, result in the sets of the
// sources. A pod exists once: the sources, Merge and the sink share it and must not change it. A source
// that fails is started again after 1 s to 20 s, and its pods stay. A pod that cannot be used is reported
// by name and does not affect others.
//
// A manifest is one regular file of at most 1.5 MiB, the size of the largest object
// that the API server stores; manifest.Decode has the other bounds. A list from a web server
// has at most 10 MiB in JSON, or 1.5 MiB in YAML, and 10,000 pods. The last valid version
// stays in effect until the file is valid again or removed. It is kept in memory only, so that a file
// that is invalid when the agent starts has no pod. A file that is being written is read when it has
// not been modified for a while. Changes behind symbolic links and on network file systems are detected
// at the next period.
//
// # Differences from the kubelet
//
//   - A manifest that becomes invalid keeps its pod. Problems can be listed and observed, and are not
//     only logged.
//   - An empty directory is an empty set. If two files contain the same pod, the first by name is used
//     and the other is reported.
//   - A pod that is being deleted is passed as an update. One whose status alone has changed is passed
//     to ReconcilePods only; if it has also changed otherwise, to UpdatePods and ReconcilePods (rule
//     src-7). An update has the whole object, including resourceVersion and owners (rule src-9).
//   - A pod of a web server's list that cannot be used keeps its last valid version and does not affect
//     others. Requests are conditional. Failed requests before the first set are retried after 1 s to
//     20 s, later ones after a period.
//   - A pod with the same UID and another name is removed and added.
//   - If two sources specify the same UID, the pod of the first is used, and that of the other when
//     the first has removed it.
//
// # Testing
//
// Merge and Memory are tested in synctest bubbles, File on real directories. FuzzURL passes arbitrary
// responses of a web server.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package podsource
