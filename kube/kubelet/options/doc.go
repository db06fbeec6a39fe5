// Package options has the configuration of a node of package kube/kubelet, as values: that
// package has the same names, and callers write kubelet.Config.
//
// # Behavior
//
// The types have no methods and construct nothing. kubelet.Open completes and validates a Config,
// and its error names the invalid field. The types are a package of their own because each
// internal package of kube/kubelet reads them.
//
// # Usage
//
//	cfg := kubelet.Config{NodeName: "edge-1", Cluster: kubelet.Cluster{Kubeconfig: "/etc/kubeconfig"}}
//	k, err := kubelet.Open(ctx, cfg)
//
// # Concurrency
//
// A Config is a value. kubelet.Open does not change the one that it is passed.
//
// # Stability
//
// Experimental: expect it to change.
package options
