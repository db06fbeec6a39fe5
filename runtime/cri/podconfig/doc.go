// Package podconfig turns a pod into what a CRI runtime is asked for: the
// configuration of its sandbox and of each of its containers.
//
// # What it decides
//
// [Sandbox] and [Container] are the whole of it: labels and annotations, the
// security context, namespaces, resources, mounts, devices, ports, sysctls. They
// are pure functions of the pod, of what the machine is ([Node]), and of what
// was resolved for the pod: its host name and DNS configuration, the environment
// of its containers, the places of its volumes, its user namespace. Nothing is
// read, fetched or made here.
//
// What goes into them of names and addresses is decided here too: [DNS.For] makes
// the pod's resolv.conf and tells what did not fit into it, [ParseResolvConf] and
// [DNS.Check] are for the node's own, [SandboxHostname] and [Hosts] make the
// hostname and the content of /etc/hosts. Package podenv makes the environment.
//
// Beside them are the readers of the labels and annotations ([HashOf] and the
// others), and three admission checks: [Sysctls], [AdmitAppArmor] and [AdmitGroups];
// cri.Runtime.Admit calls them.
//
// # Usage
//
//	in := podconfig.Input{Pod: pod, Node: node, Hostname: host, DNS: dns, LogDirectory: dir}
//	sandbox, err := podconfig.Sandbox(in, attempt)
//	…
//	config, err := podconfig.Container(in, podconfig.Instance{
//		Container: c, RestartCount: n, Image: image, User: user, Env: env, Volumes: volumes,
//	})
//
// An error is what a pod shows as the reason why it does not start: it names the
// field or the object.
//
// # Concurrency
//
// All functions are pure and may run anywhere. Results share maps and slices
// with the input where nothing is changed in them; don't change either while the
// other is in use.
//
// # Guarantees and limits
//
//   - The same input gives the same configuration, the input is not changed, and
//     no input makes it panic, a nil container or a pod that no API server would
//     take included.
//   - What would weaken a pod if it were left out is an error: a profile without
//     a name or outside its directory, a user namespace without mappings or
//     without a runtime that knows them, a recursive read-only mount that would be
//     only read-only at its top, a mount option that does not exist.
//   - docs/pod-fields.md lists every field of a pod with the test that proves it.
//   - Only Linux: fields for Windows are ignored.
//   - The limit on processes (pids) is a matter of the pod's cgroup; the CRI has
//     no place for it.
//
// # Differences from the kubelet
//
//   - A sandbox says its namespaces whenever the pod wants one of the host's or a
//     user namespace, also without a pod security context (rt-21).
//   - A group that the pod gives without a user is not the sandbox's: the CRI has
//     runtimes refuse that, and containerd does, so that a kubelet cannot start
//     such a pod there (se-11). Its containers have the group.
//   - A seccomp profile whose path leads out of the directory of profiles is
//     refused.
//   - A container without a limit on huge pages may use those of the pod as a
//     whole, as it is with memory (cm-33).
//   - An annotation for AppArmor that has no meaning is an error.
//   - A DNS configuration without a file of the node's has a name of its own,
//     DNS.NoResolvConf: in the zero value the file is /etc/resolv.conf (dn-4). A pod
//     that says nothing of a policy is not warned that there is no cluster DNS
//     (dn-3). DNS options keep their order (dn-6), and search entries that are too
//     long are dropped before they are counted (dn-7).
//   - What would write a line of its own into resolv.conf or /etc/hosts is refused:
//     line breaks in a dnsConfig, an alias, an address or a name.
//
// # Testing
//
// The rules are tables, by number. testdata has pods with the requests that are
// made from them (go test -update rewrites these); each file names the fields it
// proves, and a test holds docs/pod-fields.md to that. A fuzz test feeds random
// pods.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package podconfig
