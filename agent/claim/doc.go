// Package claim reserves the root directory and the container runtime of a node agent for
// one process.
//
// An agent removes orphaned containers, directories and cgroups: those of pods that no
// source specifies. Two agents with the same runtime, or an agent and a
// kubelet, would therefore remove each other's pods.
//
// # Behavior
//
// The package decides whether an agent may start: nothing else may use its root directory, its
// runtime, its directory of pod logs or its root of pod cgroups.
//
// # Usage
//
// Call [Take] before the agent starts, and the function that it returns after the agent has
// stopped; see the package example.
//
// # Concurrency
//
// Take and the function that it returns are safe for concurrent use.
//
// # Guarantees and limits
//
//   - Agents are detected by locks of files, which the kernel releases when the process
//     ends, on Linux and macOS. A lock next to the runtime's socket that cannot be
//     created is not an error.
//   - Kubelets are detected by their processes in /proc, their command lines and the
//     files of their --config, on Linux. Only those of root and of the agent's user in
//     the agent's mount namespace are considered: another user can start a program named
//     kubelet with any command line.
//   - A KubeletConfiguration is read leniently, up to 4 MiB; unknown and invalid fields
//     are ignored, and drop-in directories are not read.
//   - A kubelet inside another program, as in k3s, is not detected. Packages cm and
//     runtime/cri do not remove its pods: cri.Ledger contains those of this node.
//
// # Differences from the kubelet
//
// The kubelet checks only its own lock file, if --lock-file is set.
//
// # Testing
//
// Kubelets are directories in the format of /proc.
//
// # Stability
//
// Experimental: expect it to change.
package claim
