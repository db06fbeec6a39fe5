// Package cluster simulates a cluster for research: a hundred nodes with ten thousand pods
// for a day in about a minute, with the scheduler, the eviction, the image garbage
// collection and the restarts of Kubernetes, each of which can be replaced by a function.
//
// # Behavior
//
// It decides what happens on the nodes of a cluster whose pods arrive over time, use memory
// and disk as their [Usage] specifies, exit, are killed for lack of memory, are evicted,
// restart and are replaced. A [Config] has the nodes, the pods, their images and the
// [Policies]; [Cluster.Run] returns a [Report] of every pod, every node, and the state of
// the cluster over time.
//
// The simulation is a sequence of events, without goroutines and without waiting. Whatever
// the kubelet decides is decided by the packages of this module that decide it in an agent,
// which are pure functions; the rest is a model:
//
//	eviction: thresholds, grace periods, conditions, ranking, limits   real: eviction.Inputs.Plan
//	admission of pods on nodes under pressure                          real: eviction.Policy.Admit
//	image garbage collection                                           real: imagegc.Inputs.Plan
//	restart policy and back-off                                        real: runtime/cri/plan
//	quality of service, tolerations, node affinity                     real
//	memory and disk usage                                              model: a function of the container's age
//	measurement of a node                                              model: exact, every Kubelet.Period
//	the kernel's OOM killer                                            model: its score, at each measurement
//	image pulls                                                        model: one at a time, at a constant rate
//	scheduling                                                         model: filter and score, one round per second
//	ReplicaSet                                                         model: replaces a failed pod after a second
//	starting a sandbox, a container; status updates                    model: take no time
//	CPU                                                                model: requested only; no contention
//
// Package sim runs the complete agent instead, with faults, on one node. Simulating a day of
// one node with 110 pods takes it more than ten times as long.
//
// # Usage
//
//	node := cluster.Node{Capacity: cluster.Resources{CPU: 16000, Memory: 64 << 30, Disk: 200 << 30}}
//	c, err := cluster.New(cluster.Config{
//		Seed:  1,
//		Nodes: slices.Repeat([]cluster.Node{node}, 100),
//		Pods:  pods, // or those of a trace: package sim/cluster/trace
//		Duration: 24 * time.Hour,
//		Kubelet:  cluster.Kubelet{Eviction: eviction.Policy{Rank: youngestFirst}},
//		Hooks:    cluster.Hooks{Sample: func(s cluster.Sample) { fmt.Fprintln(os.Stderr, s) }},
//	})
//	report, err := c.Run(ctx)
//	err = report.WritePods(file) // also WriteNodes, WriteSamples and WriteSVG
//
// To compare policies, run the same Config with each of them. Compare the results pod by pod
// or node by node, because these differ more than policies do; examples/policy does. Package
// sim/study compares policies over many seeds, also on many machines.
//
// # Concurrency
//
// A Cluster must be used by one goroutine. Clusters are independent of each other and may run
// concurrently, if the functions of their configurations are safe for concurrent use. The
// functions of a Config are called on the goroutine of Run.
//
// # Guarantees and limits
//
// Equal configurations give equal reports and equal events, byte for byte, on every machine
// and processor architecture, if the functions of the Config depend on their arguments only.
// The package computes with integers and iterates over no map. A test compares a hash of 20
// runs with that in the repository.
//
// A node has one file system, for images and pods. There are no inodes, process IDs, volumes,
// probes, init containers, daemons or node failures, and no preemption: a pending pod waits
// for resources, those of higher priority first. Pods have one container. Writes to a full
// disk do not fail, but pulls do; runtime/cri/images computes the delay of the next pull.
// Memory is released when a container exits. Amounts are at most 1<<50.
//
// # Differences from the kubelet
//
// Those of the packages above. A node is measured without delay and without error. While a
// pod is being evicted, its node makes no further pass, however long its grace period is.
//
// # Testing
//
// Tables of small clusters; invariants of random clusters, whose seed is printed; back-off
// and eviction are compared with those of a real agent and of eviction.Manager.
//
// # Stability
//
// Experimental: the API may change in any release. A change of the model changes reports.
package cluster
