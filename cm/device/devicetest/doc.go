// Package devicetest has a device plugin for tests, which implements the
// protocol over its socket.
//
// # Behavior
//
// A [Plugin] reports the devices that Set sets and responds as its fields specify.
//
// # Usage
//
//	plugin := &devicetest.Plugin{Dir: dir, Resource: "example.com/widget"}
//	plugin.Set(devicetest.Device("w0"), devicetest.Device("w1"))
//	err := plugin.Start(ctx) // serves, and registers
//
// # Concurrency
//
// Methods are safe for concurrent use; fields must be set before Start.
//
// # Guarantees and limits
//
// It conforms to the protocol unless a field makes it respond differently.
//
// # Differences from the kubelet
//
// The kubelet has its own test plugin, in a package that cannot be
// imported.
//
// # Testing
//
// The tests of package device use it.
//
// # Stability
//
// Experimental: the API will change.
package devicetest
