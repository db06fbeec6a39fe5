// Package csitest provides a CSI driver for tests that serves the CSI API on a socket and registers as
// drivers do.
//
// # Behavior
//
// A volume is a subdirectory of the driver's directory. Publishing it mounts that directory with
// Driver.Mounter, which mounts on the host or in memory. Calls in an order that the specification
// prohibits are errors: publishing a volume that is not staged, or unstaging one that is published.
//
// # Usage
//
//	driver := &csitest.Driver{Name: "test.csi.example.com", Dir: t.TempDir(), Mounter: mounter}
//	go driver.Run(ctx, root) // plugins and plugins_registry are below root
//
// # Concurrency
//
// All methods are safe for concurrent use. Fields must be set before Run.
//
// # Guarantees and limits
//
// Run returns when ctx is done, after both sockets are removed. Volumes remain published, as they do when
// the pod of a driver is replaced; another Driver with the same Dir continues with them.
//
// # Differences from the kubelet
//
// The kubelet has no such driver.
//
// # Testing
//
// By the tests of volume/csi.
//
// # Stability
//
// Experimental: the API may change.
package csitest
