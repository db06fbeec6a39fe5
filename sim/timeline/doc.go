// Package timeline shows people what happened to pods: as a chart in text, as a
// list, as an SVG picture.
//
// # What it decides
//
// How a life of a pod is drawn: a lane for each pod with its phase and its
// readiness, one below it for each of its containers, with bars while they
// wait, back off, run and are ready, and with signs for exits, kills, failed
// probes and faults. It does not decide what happened: a [Timeline] is neutral
// marks, of a simulation or of a real node.
//
// # Usage
//
// A [Recorder] is a status.StatusSink which makes marks of what it is told:
//
//	seen := new(timeline.Recorder)
//	statuses, err := status.New(status.Config{Sink: status.Tee(sink, seen)})
//	…
//	seen.Add(timeline.Mark{What: timeline.Fault, Text: "the runtime hangs"})
//	err = seen.Timeline().Of("default/web").WriteSVG(file)
//
// Marks may as well be made by hand.
//
// # Concurrency
//
// A Timeline is a value; its methods change nothing. A Recorder may be used from
// many goroutines at once.
//
// # Guarantees and limits
//
// The same marks give the same bytes. Names and words are escaped: nothing that
// somebody called a pod becomes an element of the picture or a command to a
// terminal. What begins and ends within one column of a chart is one letter;
// the picture has it all. Everything is kept in memory, and each mark is
// drawn: take [Timeline.Of] one pod, or set bounds, where there are very many.
//
// What a status does not tell a Recorder does not know: a container that ran
// and ended twice between two statuses is drawn once.
//
// # Differences from the kubelet
//
// It has nothing of the kind.
//
// # Testing
//
// Golden files in testdata, hostile names among them; run the test with -update
// to write them anew, and look at the pictures.
//
// # Stability
//
// Experimental: try it, and expect it to change.
package timeline
