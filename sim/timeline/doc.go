// Package timeline draws the history of pods: as a chart in text, as a list and as an
// SVG image.
//
// # Behavior
//
// It decides how the lifecycle of a pod is drawn: a row for each pod with its phase and
// its readiness, below it one for each of its containers, with bars while they wait, are
// in back-off, run and are ready, and with symbols for exits, kills, failed probes and
// faults. The events come from the caller: a [Timeline] consists of marks, of a
// simulation or of a real node.
//
// # Usage
//
// A [Recorder] is a status.Sink that derives marks from the statuses it receives:
//
//	recorder := new(timeline.Recorder)
//	statuses, err := status.New(status.Config{Sink: status.Tee(sink, recorder)})
//	…
//	recorder.Add(timeline.Mark{Kind: timeline.Fault, Text: "the runtime hangs"})
//	err = recorder.Timeline().ForPod("default/web").WriteSVG(file)
//
// A caller may also create the marks itself. [WritePlots] draws values over time, such as
// the memory of a cluster, and [WriteBars] draws bars.
//
// # Concurrency
//
// A Timeline is a value; its methods do not modify it. A Recorder is safe for concurrent
// use.
//
// # Guarantees and limits
//
// Equal marks give equal output. Names and texts are escaped: the name of a pod cannot
// become an element of the image or a control sequence of a terminal. Marks within one
// column of a chart are one letter; the image contains all of them. All marks are in
// memory and are drawn: if there are very many, draw one pod with [Timeline.ForPod], or
// set the bounds.
//
// A Recorder only gets the contents of statuses: a container that started and exited
// twice between two statuses is drawn once.
//
// # Differences from the kubelet
//
// The kubelet has no counterpart.
//
// # Testing
//
// The output is compared with golden files in testdata, also for hostile names. Run the
// test with -update to rewrite them, and inspect the images.
//
// # Stability
//
// Experimental: the API may change in any release.
package timeline
