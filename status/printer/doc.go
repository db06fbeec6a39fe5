// Package printer prints the statuses of pods to a terminal.
//
// # Behavior
//
// It decides which changes and events are of interest to a user of an agent in a terminal,
// and how text from containers is made safe to print.
//
// # Usage
//
// The example of [Printer] prints a status and an event. An agent uses it as a sink and for
// events:
//
//	out := &printer.Printer{W: os.Stdout}
//	a, err := agent.New(agent.Config{Sink: out, Record: out.Record, …})
//	out.Printf("agent", "node %s is ready", name)
//
// # Concurrency
//
// A Printer is safe for concurrent use.
//
// # Guarantees and limits
//
// Statuses that do not differ print nothing. The Printer keeps the last status of each
// pod until DeletePod.
//
// # Differences from the kubelet
//
// The kubelet has no such output.
//
// # Testing
//
// Lines are compared, and text from containers is fuzzed where it is escaped.
//
// # Stability
//
// Experimental: expect it to change.
package printer
