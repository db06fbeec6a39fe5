// Package podenv makes the environment of a container from its spec, as a
// kubelet does. A provider that runs containers elsewhere than on a CRI runtime
// can use it alone.
//
// # What it decides
//
// [Needs] tells which ConfigMaps, Secrets and env files a container's variables
// refer to. The caller fetches them, and [Make] answers from what was fetched:
// the variables in order, with all references resolved, each with its [Source].
// [Expand] replaces references in other places, such as commands and arguments,
// and [ExpandLiterals] in the commands of probes.
// [ParseFile] reads env files. [FieldValue] and [ResourceFieldValue] answer alone, for files of
// the downward API.
//
// # Usage
//
//	needs := podenv.Needs(pod, c)
//	facts := podenv.Facts{Pod: pod, PodIPs: ips, HostIPs: nodeIPs, Allocatable: node.Status.Allocatable}
//	// fill facts.ConfigMaps, Secrets and Files with what needs lists, and Services
//	env, err := podenv.Make(facts, c)
//	if err != nil {
//		// the container waits: CreateContainerConfigError, err.Error()
//	}
//	for _, v := range env.Vars() {
//		…
//	}
//	args, err := env.ExpandAll(c.Args)
//
// # Concurrency
//
// All functions are pure, but [ReadFile], and may run anywhere. An [Env] can be
// read from many goroutines.
//
// # Guarantees and limits
//
//   - Equal facts give equal environments in the same order, whatever the order
//     of the services (pe-10): names in the order in which they are first defined,
//     the keys of an envFrom sorted, the services' variables last.
//   - An object that doesn't exist ([ErrNotFound]), one that nobody could fetch
//     ([ErrNoObjects]), and one whose fetching failed are told apart: only the
//     first is what an optional variable can do without.
//   - A Source never holds a value: it can be logged where a secret must not be.
//   - What no process could have as a variable is an error: a name that is empty
//     or has a "=" in it, a zero byte. Other names are taken as they are (pe-3).
//   - Env files are read from volumes of type emptyDir only, up to 64 KiB.
//   - The values of an environment have at most [MaxSize] bytes together, and so
//     have the arguments of a command: references cannot multiply without end.
//
// # Differences from the kubelet
//
//   - The order is not that of a map (pe-10).
//   - A pod that says nothing of service links gets them, as the API server would
//     have it, instead of an error (pe-1).
//   - The limit that a container reads without having one is the pod's, if that
//     has one, before it is the node's (pe-8).
//   - The master service's namespace is always "default".
//   - A failed fetch is reported with the name of the object before it.
//
// # Testing
//
// Each rule pe-1 … pe-13 is a line in a table, by number; a thousand runs with
// shuffled services are compared; the parsers are fuzzed.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package podenv
