// Package resolved computes what a backend needs of a pod as one value: the
// environment of each container, the files of its volumes, pull credentials,
// hostname, hosts file and DNS configuration, as the kubelet resolves them.
//
// # Behavior
//
// A [Resolver] fetches the ConfigMaps, Secrets, services and tokens that a pod refers
// to and returns a [Pod]: environment and commands with all references expanded
// (package podenv), the files of configMap, secret, downwardAPI and projected volumes
// with modes and owners (volume/payload), tokens that are bound to the pod
// (volume/token), hosts file and DNS configuration (runtime/cri/podconfig).
//
// # Usage
//
// A virtual-kubelet provider resolves a pod in CreatePod and follows its changes:
//
//	r, err := resolved.New(resolved.Config{Objects: objects, Tokens: tokens})
//	for pod, err := range r.Follow(ctx, pod) {
//		// the first value: create; later ones: replace the files
//	}
//
// The source of objects calls [Resolver.ObjectChanged]. A Resolver is also the volumes
// of an agent (pipeline.Volumes) whose runtime copies files, such as runtime/containers
// over a backend with Support.Files.
//
// # Concurrency
//
// All methods are safe for concurrent use. The package starts no goroutine: Follow runs
// in that of its caller, and the refresh of a mounted volume is a timer.
//
// # Guarantees and limits
//
//   - Nothing is polled: a pod is resolved again when an object that it refers to has
//     changed and when a token or certificate is due, at 80 % of its lifetime or
//     after 24 hours. After an error, the next attempt follows after 1 s, doubled up
//     to 2 minutes.
//   - Equal objects give equal values. Follow yields only values that differ.
//   - Values of variables and contents of files do not occur in the texts of package
//     fmt and log/slog. Encoders of other formats write them.
//   - Nothing is written to disk.
//   - An object that does not exist is an error of the container whose environment
//     refers to it, and of the pod if a volume does, as in the kubelet.
//   - Volumes of other kinds are not part of the value, nor are variables from env files
//     (fileKeyRef), whose volume is not here.
//   - The address of a pod is that in its status: variables with status.podIP and the
//     hosts file need it.
//
// # Differences from the kubelet
//
// Those of podenv, volume/payload, volume/token and runtime/cri/podconfig.
//
// # Testing
//
// In a synctest bubble: changes of objects, the rotation of tokens, an API server that is
// away, and texts that must not contain secrets.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package resolved
