// Package apitest is a Kubernetes API server in memory, for tests of what
// speaks to one.
//
// # What it decides
//
// How a server would answer: it stores typed objects, and lists, watches
// (watch-lists and bookmarks included), patches and deletes them with their
// preconditions and grace, in JSON and in protobuf. It checks nothing, defaults
// nothing and authorizes everybody.
//
// What makes it worth having is what goes wrong: [Server].Fault says of each
// call how long it takes, and how it fails. Watches can be dropped, history
// forgotten. It remembers the calls, so that a test can count them.
//
// # Usage
//
//	api := new(apitest.Server)
//	api.Put(pod)
//	conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
//	...
//	api.Pod("prod", "web").Status
//	api.Calls("patch", "pods/status")
//
// # Concurrency
//
// All methods may be called at any time. There is no network and no goroutine
// without a call, so that it works in a synctest bubble; with
// httptest.NewServer it has a network.
//
// # Guarantees and limits
//
// Versions grow by one with each change, of whatever resource, as in etcd.
// Patches are strategic merge patches. Selectors are those of fields. There are
// the resources that a node uses; others are 404.
//
// # Testing
//
// The tests of package client are its own.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package apitest
