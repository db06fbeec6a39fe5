// Package conformance compares API servers with kube-apiserver: the same requests to both, and
// the differences between the responses. The tests in kube/apitest/internal/conformance compare
// apitest.Server, those of kube/controllers/apiserver the server with the libraries of
// Kubernetes.
//
// The requests are data: each file of kube/apitest/internal/conformance/testdata/scenarios is a
// scenario, a sequence of HTTP requests that build on each other, with the responses of a
// kube-apiserver behind each request. A scenario has a namespace named after it. TestIntegrationCluster
// sends the requests to a kube-apiserver and compares the responses with the files, so that the files
// remain true; with -update it records the responses. TestServer sends them to an apitest.Server.
//
// The differences that exist are listed in testdata/differences.txt with a reason. A
// difference that is not listed fails the test, as does a listed one that no longer exists.
// docs/apitest.md is generated from the list by TestServer with -update.
//
// # Format
//
// A scenario starts with its description and an empty line. Each request starts with a line
// "=== name", then has the method and the path, headers and directives, and after an empty
// line the body. The line "--- code" starts the response: the headers that are compared, an
// empty line, and the body as YAML. Watches are lists of events.
//
//	=== update with the first version
//	PUT /api/v1/namespaces/concurrency/configmaps/a
//
//	{"metadata":{"name":"a","resourceVersion":"${create|metadata.resourceVersion}"}}
//	--- 409
//	Content-Type: application/json
//
//	kind: Status
//
// ${name|path} is a value from the response to an earlier request, and ${text*n} is text n
// times. Directives are headers that are not sent:
//
//	@until: 404          repeat the request until the response has the code or contains the text
//	@events: 2           end a watch after two events
//	@keep: a.(name=x).b  compare only this field, of all items of a list or of those selected; can be repeated
//	@managed: fields     compare managedFields completely, not only managers and operations
//	@compact: true       delete the history before the request
//
// # Normalization
//
// Values that differ between two runs are replaced. A resourceVersion becomes the name of the
// request whose response first contained it, and that of a list the newest of those that it
// includes; UIDs are replaced in the same way. Times of the run, generated names, continue
// tokens and storage version hashes become constants.
package conformance
