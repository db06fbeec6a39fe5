// Package apitest is an in-memory Kubernetes API server for tests.
//
// # Behavior
//
// A [Server] answers as kube-apiserver does: it creates, reads, lists, watches, updates,
// patches, applies and deletes the resources of Kubernetes and custom resources, in JSON
// and, for resources with Go types, in protobuf. It sets the common defaults, validates
// metadata, pods and pod templates, counts generations, separates status from spec, tracks
// managed fields, honors finalizers, grace periods, preconditions, dry runs and selectors,
// collects dependents, and terminates namespaces. Unless [Server].Raw is set, a pod gets the
// tolerations of the admission plugin DefaultTolerationSeconds: 300 s for nodes that are not
// ready or unreachable.
//
// Tests can inject failures: [Server].Fault determines the latency and failure of each
// request, watches can be interrupted, and history can be compacted. Requests are recorded,
// so that tests can count them. [Server].Admit is the admission of the test, and
// [Server].Admission that of a package. [Server].Extension replaces parts of the server by those
// of kube-apiserver: kube/controllers/apiserver has webhooks, admission policies, validation,
// conversion, tables, tokens, RBAC, and cluster IPs.
//
// # Usage
//
//	api := new(apitest.Server)
//	api.Put(pod)
//	clients, err := kubernetes.NewForConfig(api.RESTConfig())
//	...
//	api.Pod("prod", "web").Status
//	api.Calls("patch", "pods/status")
//
// Custom resources come from the Go types of [Server].Scheme, or from
// CustomResourceDefinitions that a client creates. Put, Remove, Get, Pod and List access the
// objects without requests: Put stores objects as they are.
//
// # Concurrency
//
// All methods are safe for concurrent use. There is no network and no goroutine without a
// request, so that it can be used in a synctest bubble; httptest.NewServer adds a network.
// Garbage collection and the deletion of namespaces are part of the request that causes
// them: when it is answered, they are done, except for pods that their node must terminate.
// [Server].CollectionLatency does them later, on a goroutine that ends when nothing is left to
// do, and NoCollection leaves them to controllers.
//
// # Guarantees and limits
//
// Resource versions increase by one with each change of any resource, as in etcd. UIDs,
// tokens and generated names are the same in each run. A list and its pages are consistent;
// the history of the latest changes of each resource is kept, earlier versions result in
// 410.
//
// Managed fields are computed by Kubernetes' own library: with the types of client-go for
// built-in kinds; with deduced types, whose lists are atomic, for custom resources. Objects
// of Put have none until they are applied.
//
// There are no quotas, no node ports and no default service accounts. Without
// kube/controllers/apiserver there is no authentication and no authorization: access reviews
// permit everything; there are no webhooks, no tokens that another server accepts, and no
// cluster IPs. The subresources log, exec, attach, portforward
// and proxy result in 501 without [Server].Connect. The subresource scale cannot be applied.
// The schemas of custom resources are checked except for CEL rules, patterns, formats and
// combinations (oneOf, anyOf, allOf, not); versions of a custom resource are not converted
// but by their names.
//
// # Differences
//
// Objects whose owners do not exist are not collected: tests often invent owners. A
// disruption budget whose status no controller has set is computed for each eviction.
// Namespaces need not exist unless [Server].RequireNamespaces is set. An Event is created
// under another name, with a suffix, if it has the name of a different Event that was
// created at the same nanosecond: clients name Events by the time, which stands still in a
// synctest bubble. A watch may start at a
// version that does not exist yet; it starts at the latest.
//
// # Testing
//
// It is tested with client-go, kubectl, and the tests of package client.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package apitest
