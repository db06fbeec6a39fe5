// Package podenv computes the environment variables of a container from its spec, as the kubelet
// does. It does not depend on a container runtime.
//
// # Usage
//
// [References] returns the names of the ConfigMaps, Secrets and env files that the variables of a
// container refer to. The caller reads these and passes them to [New], which returns the
// variables in order, with all references resolved, each with its [Source]:
//
//	configMaps, secrets, files := podenv.References(pod, c)
//	in := podenv.Inputs{Pod: pod, PodIPs: ips, HostIPs: nodeIPs, Allocatable: node.Status.Allocatable}
//	// set in.ConfigMaps, in.Secrets and in.Files to the objects named above, and in.Services
//	env, err := podenv.New(in, c)
//	if err != nil {
//		// the container waits with the reason CreateContainerConfigError and the message err.Error()
//	}
//	args, err := env.ExpandAll(c.Args)
//
// [Env.ExpandAll] expands references in a command and its arguments, [Expand] and [ExpandAll] in
// other strings such as a subPathExpr, and [ExpandLiterals] in the commands of probes. [ReadFile]
// reads an env file. [FieldValue] and [ResourceFieldValue] resolve single references, for volumes
// of the downward API.
//
// # Concurrency
//
// All functions except [ReadFile] are pure. An [Env] is immutable and safe for concurrent use.
//
// # Guarantees and limits
//
//   - Equal inputs give equal environments in the same order: names in the order of their first
//     definition, the keys of an envFrom entry sorted, the variables of services last, sorted by
//     service. The order of Inputs.Services is not significant.
//   - An optional reference is skipped only if its object does not exist. An object that could not
//     be read, or was not passed, is an error.
//   - A Source does not contain the value of the variable and can be logged.
//   - A name that is empty or contains "=", and a name or value with a zero byte, is an error,
//     because no process can have such a variable. Other names are not validated (rule pe-3).
//   - Env files are supported in volumes of type emptyDir. A key that is not in the first MiB of a
//     file is an error.
//   - The values of an environment, and the arguments of a command, are limited to 8 MiB in total,
//     so that nested references cannot exhaust memory.
//
// # Differences from the kubelet
//
//   - The variables are ordered; in the kubelet they have the order of a map.
//   - If spec.enableServiceLinks is not set, it counts as true, the default of the API server. The
//     kubelet returns an error.
//   - The namespace of the master service is always "default".
//   - The error of an object that could not be read begins with the name of the object.
//
// # Testing
//
// The rules pe-1 to pe-13 are cases of table tests. The parsers are fuzzed.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package podenv
