// Package provider is the pod half of a virtual-kubelet provider, on top of any
// runtime.Runtime.
//
// A [Provider] has the methods of virtual-kubelet's node.PodLifecycleHandler and
// node.PodNotifier, with the same signatures, so that it is one without this module
// knowing of virtual-kubelet:
//
//	p, err := provider.New(provider.Config{Runtime: rt})
//	…
//	cm, err := nodeutil.NewNode(name, func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
//		return full{Provider: p}, nil, nil // with GetContainerLogs and what else nodeutil.Provider wants
//	})
//	go p.Run(ctx)
//	err = cm.Run(ctx)
//
// virtual-kubelet keeps what it is good at: the node's object, its lease, the watch.
// What providers write by hand is podworker's, status's and prober's: the order of a
// pod's life by its UID, restarts, graceful ends, phase and conditions, probes, and
// that a status which was said is told until it has arrived.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package provider
