// Package apitest is an in-memory Kubernetes API server for tests.
//
// # Behavior
//
// The responses of an API server: it stores typed objects, and lists, watches (including
// watch-lists and bookmarks), patches and deletes them with preconditions and grace
// periods, in JSON and in protobuf. It does not validate, default or authorize.
//
// Tests can inject failures: [Server].Fault determines the latency and failure of each
// request, watches can be interrupted, and history can be compacted. Requests are recorded,
// so that tests can count them.
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
// All methods are safe for concurrent use. There is no network and no goroutine without a
// request, so that it can be used in a synctest bubble; httptest.NewServer adds a network.
//
// # Guarantees and limits
//
// Resource versions increase by one with each change of any resource, as in etcd. Patches
// are strategic merge patches; others result in 415. Lists and watches evaluate label
// selectors, and field selectors of the fields that an API server supports; other fields
// result in 400, as do the parameters continue, dryRun and resourceVersionMatch=Exact. The
// parameter limit is ignored: a list is complete. Collections cannot be deleted. The
// resources are those that a node uses; others, and subresources other than status, binding
// and token, result in 404.
//
// Discovery (/api, /apis, /version and the paths below) describes the served resources, so
// that REST mappers work. It is neither counted by Calls nor subject to Fault. There is no
// OpenAPI, no aggregated discovery, and no server-side apply.
//
// # Testing
//
// It is tested with the tests of package client.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package apitest
