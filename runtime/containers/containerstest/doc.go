// Package containerstest provides a backend in memory for tests of package
// runtime/containers, and a suite that checks a backend.
//
// # Usage
//
// The zero [Backend] is ready. Containers run as the [fake.Behavior] of their image
// specifies: queued, started slowly, exiting, ignoring a stop.
//
//	backend := new(containerstest.Backend)
//	backend.Behave("job:1", fake.Behavior{Exit: &fake.Exit{After: time.Minute, Code: 1}})
//
// Backend.Fault returns the fault of each call: an error, a delay, or an effect
// whose response is lost. [Backend.Violations] reports whether two instances of a
// container have run at the same time.
//
// [TestBackend] checks a backend in named steps, such as RunIsIdempotentByKey and
// AnExitHasACodeAndFixedTimes.
//
// # Concurrency
//
// All methods are safe for concurrent use. There are no goroutines except those of
// commands; queues and exits are timers.
//
// # Guarantees and limits
//
// It uses package time, so that it runs in virtual time in a testing/synctest
// bubble. It executes nothing, writes no logs, and pulls no images.
//
// # Differences from the kubelet
//
// None: it is below the runtime.
//
// # Testing
//
// The conformance suite of package runtimetest runs over it. The suite runs over it
// and over an adapted machine manager.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package containerstest
