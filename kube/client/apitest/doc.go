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
// Patches are strategic merge patches; others are 415. Lists and watches evaluate
// label selectors, and field selectors of the fields that an API server supports;
// other fields are 400, and so are the parameters continue, dryRun and
// resourceVersionMatch=Exact. The parameter limit is ignored: a list is complete.
// Collections cannot be deleted. The resources are those that a node uses; others,
// and subresources other than status, binding and token, are 404.
//
// Discovery (/api, /apis, /version and what is below) describes the served
// resources, so that REST mappers work. It is neither counted by Calls nor subject
// to Fault. There is no OpenAPI, no aggregated discovery, and no server-side apply.
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
