// Package csitest has a CSI driver for tests, which speaks the real API over its socket,
// and makes itself known as drivers do.
//
// # What it decides
//
// A volume is a directory below the driver's own; publishing it mounts that directory, by
// whichever Mounter: the machine's, for containers to see it, or one in memory. It keeps
// the order that the specification asks for, so that who calls it out of order is told:
// nothing is published that isn't staged, nothing unstaged that is published.
//
// # Usage
//
//	driver := &csitest.Driver{Name: "test.csi.example.com", Dir: t.TempDir(), Mounter: mounter}
//	go driver.Run(ctx, root) // plugins and plugins_registry are below root
//
// # Concurrency
//
// All methods may be called from many goroutines. Fields are set before Run.
//
// # Guarantees and limits
//
// Run returns when ctx ends, with both sockets gone. What is published stays, as it does
// when a driver's pod is replaced; another Driver with the same Dir knows it.
//
// # Differences from the kubelet
//
// It has no such driver.
//
// # Testing
//
// By the tests of volume/csi.
//
// # Stability
//
// Experimental: try it, and expect it to change.
package csitest
