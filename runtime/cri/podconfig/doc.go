// Package podconfig computes the configurations of a pod's sandbox and containers that are
// sent to a CRI runtime.
//
// [Sandbox] and [Container] return labels and annotations, security context, namespaces,
// resources, mounts, devices, ports and sysctls. They are pure functions of the pod, the
// machine ([Node]) and the values that a caller has resolved for the pod: hostname, DNS
// configuration, environment, volume paths, user namespace. The package reads no files and
// creates nothing.
//
// [DNS.ForPod] computes a pod's resolv.conf and reports the entries that exceed its limits;
// [ParseResolvConf] and [DNS.CheckLimits] are for the node's file. [SandboxHostname] and
// [HostsFile] return the hostname and the content of /etc/hosts. Package podenv computes the
// environment.
//
// [HashOf], [RestartCountOf] and others read the labels and annotations. [Sysctls],
// [AdmitAppArmor] and [AdmitGroups] are admission checks; cri.Runtime.Admit calls them.
//
// # Usage
//
// See [Container] for an example. The message of an error is for the pod's status and
// events; it names the field or object.
//
// # Concurrency
//
// All functions are safe for concurrent use. Results share maps and slices with the input:
// neither may be changed while the other is in use.
//
// # Guarantees and limits
//
//   - The same input gives the same configuration, the input is not changed, and no input
//     causes a panic, including a nil container and pods that an API server would reject.
//   - Settings that protect the node or the pod are never dropped silently. An error is
//     returned for a profile without a name or outside its directory, a user namespace
//     without mappings or without support in the runtime, a recursive read-only mount that
//     would be read-only at its top only, and an unknown mount option.
//   - docs/pod-fields.md lists all fields of a pod with the tests that prove them.
//   - Linux only: fields for Windows are ignored.
//   - The limit on process IDs is set on the pod's cgroup; the CRI has no field for it.
//
// # Differences from the kubelet
//
//   - A sandbox has namespace options whenever the pod uses a namespace of the host or a user
//     namespace, even without a pod security context (rule rt-21).
//   - runAsGroup of a pod without runAsUser is not set on the sandbox, only on its containers:
//     the CRI requires runtimes to reject it, so with containerd a kubelet cannot start such
//     a pod (rule se-11).
//   - A seccomp profile whose path leads outside the directory of profiles is an error.
//   - A container without a huge page limit has the pod-level limit, as with memory (rule
//     cm-33).
//   - An invalid AppArmor annotation is an error.
//   - DNS.NoResolvConf replaces the kubelet's empty resolvConf; an empty path means
//     /etc/resolv.conf (rule dn-4). A pod without a DNS policy does not cause a warning about
//     missing cluster DNS (rule dn-3). DNS options keep their order (rule dn-6), and search
//     entries that are too long are dropped before the entries are counted (rule dn-7).
//   - Values that would add a line to resolv.conf or /etc/hosts are errors: line breaks in a
//     dnsConfig, an alias, an address or a name.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package podconfig
