// Package podhttp sends the httpGet requests of probes and lifecycle hooks.
//
// A pod's author chooses the host, port, path and headers of such a request, and
// the pod's containers choose the response, but the request comes from the node's
// network. So it is bounded: redirects are followed only to the host of the first
// request, and only a few; no proxy is used; the headers and the body that are
// read have a limit; and no connection is kept.
package podhttp
