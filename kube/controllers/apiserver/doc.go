// Package apiserver gives kube/apitest the admission, the validation, the custom resources, the
// tables and the access control of kube-apiserver.
//
// # Behavior
//
// [Start] runs the admission plugins of Kubernetes 1.37.2 (k8s.io/apiserver) in an
// [apitest.Server]: MutatingAdmissionPolicy, MutatingAdmissionWebhook,
// ValidatingAdmissionPolicy and ValidatingAdmissionWebhook, in this order, with selectors,
// match conditions, failure policies, timeouts, side effects, warnings and reinvocation. A
// webhook is called at its URL, or at an endpoint of its Service.
//
// CustomResourceDefinitions are defaulted and validated, and custom resources are validated
// by their schemas, with the code of k8s.io/apiextensions-apiserver: patterns, formats,
// combinations, list types, rules in CEL with transition rules, and ratcheting. Their versions
// are converted by webhooks. The kinds of Kubernetes are defaulted, prepared and validated by
// the strategies of k8s.io/kubernetes, and tables have its columns. Services get cluster IPs and node ports.
//
// Tokens of ServiceAccounts are signed, and reviews of tokens and of access are answered. With
// Config.RBAC, [Handler] authorizes requests by roles and bindings, which are protected against
// escalation. With Config.Kubelet, logs and streams of pods are those of the nodes.
//
// # Usage
//
//	api := new(apitest.Server)
//	stop, err := apiserver.Start(t.Context(), api, apiserver.Config{})
//	if err != nil { … }
//	defer stop()
//	clients, err := kubernetes.NewForConfig(api.RESTConfig())
//
// # Concurrency
//
// All functions can be used concurrently. Informers run until stop is called: without it, a
// synctest bubble ends with "deadlock: main bubble goroutine has exited but blocked
// goroutines remain".
//
// # Guarantees and limits
//
// As in kube-apiserver, a configuration takes effect a moment after it is written: informers
// observe it. A test should retry until its webhook is called.
//
// A webhook with a namespace selector, and a policy, need the Namespace object of the request,
// also if Server.RequireNamespaces is not set.
//
// Bindings, evictions, connects and the subresource scale are not subject to admission.
// Authorizers of CEL permit everything. Roles are not aggregated without the controller.
//
// The package is part of the module kube/controllers, whose documentation has the lines that
// the go.mod of its users needs. The program testcluster beside it needs none.
//
// # Differences
//
// Managed fields are computed after the mutating plugins, which do not see those of the
// request. There are no audit annotations, and two Services that are created at the same time
// may get one cluster IP.
//
// # Testing
//
// The tests send the same requests to a kube-apiserver and expect the same responses, and
// repeat the comparison of kube/apitest.
//
// # Stability
//
// Experimental: it follows Kubernetes' libraries, which change with each minor version.
package apiserver
