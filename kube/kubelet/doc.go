// Package kubelet is a complete Kubernetes node as a library: Open constructs it from a
// KubeletConfiguration, and Run runs it until its context is done.
//
// # Behavior
//
// The package derives the configurations of the subsystems from a KubeletConfiguration, and
// determines which of them exist on this machine and the order of their construction. Every decision about
// pods belongs to a subsystem and is documented there: package agent and its parts for the
// pod pipeline, eviction, imagegc, allocation, volume and cm for the resources of the node,
// kube/node and kube/client for the cluster, kube/server for the API.
//
// # Usage
//
//	cfg, warnings, err := config.Read("/var/lib/kubelet/config.yaml", "") // package kube/kubelet/config
//	k, err := kubelet.Open(ctx, kubelet.Config{
//		Configuration: cfg,
//		Cluster:       kubelet.Cluster{Kubeconfig: "/etc/kubernetes/kubelet.conf"}, // empty: standalone
//		Host:          kubelet.Host{Manage: true},                                 // as the kubelet does
//	})
//	err = k.Run(ctx) // blocks; if ctx is done the kubelet stops and the pods keep running
//
// [Config].Runtime replaces the connection to containerd: by CRI services, or, in its field New, by any
// runtime.Runtime, such as one of package runtime/containers over a machine manager. Such a node is a node as
// any other: it registers, has a lease, and serves logs, exec and statistics as far as the runtime has them.
// examples/virtualnode is one. Each function that is appended to Config.Adjust receives the configuration of
// one subsystem before that is constructed: to add a plugin of volumes, an admission check or routes of the
// API, or to change the order of eviction. The examples show each of them. examples/kubelet is a program with
// the kubelet's command line.
//
// # Concurrency
//
// All methods of Kubelet are safe for concurrent use. Run runs every component on its own
// goroutine and returns after all of them have returned. Functions of Config that are
// called while the kubelet runs (Sink, Record, Notify) are called from several goroutines.
//
// Several kubelets may run in one process. Each requires its own RootDir, ports, runtime
// and podLogsDir, and none of them should set [Host].Manage; with cgroups, each requires its
// own cgroupRoot. A RootDir that another kubelet or agent uses is an error that wraps
// claim.ErrInUse.
//
// # Guarantees and limits
//
//   - Open locks RootDir, opens the configured ports, connects to the runtime, reads the
//     state in RootDir, and prepares cgroups as root. If it fails it releases all of it;
//     cgroups, files in RootDir and limits of the process remain.
//   - Run and Close release what Open has acquired. One of them must be called.
//   - A kubelet that stops or is killed leaves the pods running. The next one with the same
//     RootDir takes them over.
//   - A component that fails stops the kubelet: Run returns its error after the others have
//     returned. A component that does not return within 15 s is left behind with an error.
//   - Pods of Runtime.New have no cgroups, devices, resource claims and exclusive CPUs on this
//     machine, are not resized, and their images are not collected. If Runtime.Node is set, they
//     are evicted only for the disk of this machine, which has their logs and volumes.
//   - A kubelet without root privileges creates no cgroups and mounts nothing, and runs the
//     pods that require neither. The package builds on Windows and macOS, where there are
//     neither cgroups nor mounts.
//   - Metrics that are read from this process, such as Go runtime metrics, count all
//     kubelets of the process.
//
// # Differences from the kubelet
//
// docs/configuration.md lists the fields and feature gates that have no effect. Besides:
//
//   - A standalone kubelet opens only the ports that are configured. Its static pods are
//     evicted by priority, since otherwise none could be evicted.
//   - [Cluster].CheckpointPods starts the pods of a cluster that cannot be reached.
//   - The state of the node is visible on a status page ([Kubelet.StatusPage]).
//   - Resources are configured but never enforced for plain processes.
//   - A pod with an inline volume that no plugin can mount, such as iscsi, is rejected
//     (PodFeatureUnsupported) and does not wait. With a claim for one it waits.
//
// # Testing
//
// With fakecri as [Config].Runtime and package kube/apitest as [Cluster].Client a
// kubelet runs in memory, without root privileges and network; several_test.go runs three
// of them. evictionHard should be an empty map in such tests: otherwise they depend on the
// free disk space of the machine. test/kubelet tests the program against containerd and a
// control plane, and test/conformance runs the node conformance tests.
//
// # Stability
//
// Experimental: expect it to change.
package kubelet
