// Package trace reads the pods and nodes of a simulated cluster from CSV files: from a format
// of its own, and from a public trace of Alibaba.
//
// # Behavior
//
// It decides which pods and nodes of package sim/cluster a file describes. [ReadPods] reads
// files with these columns, in any order; the first line has their names. A column may be
// missing, except arrival_s, and a field may be empty:
//
//	name             of the pod, unique
//	arrival_s        when it is created, in seconds since the start of the simulation
//	duration_s       how long its container runs until it exits, at least a millisecond;
//	                 empty: until it is stopped
//	exit_code        with which it exits
//	restart_policy   Always, OnFailure or Never; empty: Never with duration_s, else Always
//	recreate         true: the pod is replaced when it fails or is evicted
//	cpu_milli        requested CPU, in thousandths
//	memory_mib       requested memory, in MiB
//	disk_mib         requested ephemeral storage, in MiB
//	limit_cpu_milli, limit_memory_mib, limit_disk_mib
//	                 the limits
//	used_memory_mib  the working set, in MiB; empty: as requested
//	used_disk_mib    the used ephemeral storage, in MiB; empty: as requested
//	priority         of the pod
//	image            of the container
//
// Usage is one number, or numbers at ages of the container in seconds: "0:512 60:700 3600:650".
//
// [ReadAlibabaPods] and [ReadAlibabaNodes] read the files openb_pod_list_*.csv and
// openb_node_list_*.csv of cluster-trace-gpu-v2023, a Kubernetes cluster of 1,523 nodes and
// 8,152 pods. Their columns are described in
// https://github.com/alibaba/clusterdata/blob/master/cluster-trace-gpu-v2023/README.md, and
// the functions document how they are used.
//
// # Usage
//
//	pods, err := trace.ReadPods(file)
//	c, err := cluster.New(cluster.Config{Nodes: nodes, Pods: pods, Duration: 24 * time.Hour})
//
// # Concurrency
//
// The functions are safe for concurrent use.
//
// # Guarantees and limits
//
// Files are untrusted: a line has at most 1 MiB, a file at most 5 million lines, amounts are
// at most 1<<50 bytes and times at most 1<<30 seconds. An error names the line and the column.
// A column that is unknown is an error. Numbers are read without floating point.
//
// # Differences from the kubelet
//
// The kubelet has no counterpart.
//
// # Testing
//
// Tables of files and errors; files are fuzzed. The files in testdata were written for the
// tests; no data of a trace is in the repository.
//
// # Stability
//
// Experimental: the API may change in any release.
package trace
