// Package dratest has a DRA driver for tests, which implements the protocol of its plugin
// over sockets.
//
// # Behavior
//
// A [Driver] registers as a plugin, prepares one device for each claim, optionally with a
// CDI specification, and commits the [Fault] that SetFault sets.
//
// # Usage
//
//	driver := &dratest.Driver{Name: "test.example.com", Dir: dir, RegistryDir: registry, CDIDir: "/var/run/cdi"}
//	err := driver.Start()
//	defer driver.Stop()
//
// # Concurrency
//
// Methods are safe for concurrent use; fields must be set before Start.
//
// # Guarantees and limits
//
// It conforms to the protocol, unless a fault or OnPrepare makes it respond differently. It
// publishes no ResourceSlices.
//
// # Differences from the kubelet
//
// Kubernetes has its own test driver, in a package that cannot be imported.
//
// # Testing
//
// The tests of package dra use it.
//
// # Stability
//
// Experimental: the API will change.
package dratest
