// Package devicetest has a device plugin to test with: a real one, that speaks the
// protocol over its socket.
//
// # What it decides
//
// A [Plugin] offers the devices that it is told to, and answers as its fields say.
//
// # Usage
//
//	plugin := &devicetest.Plugin{Dir: dir, Resource: "example.com/widget"}
//	plugin.Set(devicetest.Device("w0"), devicetest.Device("w1"))
//	err := plugin.Start(ctx) // serves, and registers
//
// # Concurrency
//
// Methods may be called from any goroutine; fields are set before Start.
//
// # Guarantees and limits
//
// It does what the protocol says unless a field makes it lie.
//
// # Differences from the kubelet
//
// The kubelet has a plugin of its own to test with, in a package that can't be
// imported.
//
// # Testing
//
// The tests of package device are made of it.
//
// # Stability
//
// Experimental: try it, and expect it to change.
package devicetest
